// What the scenario promises, beside the form, and made anew while one types.

import type { ReactNode } from "react";
import type { Indicators } from "../../client/documents";
import { bytes, count, duration, mebibytes, number, percent } from "../../lib/format";
import { Notice } from "../../ui/parts";
import { Bar, Pairs, Split, type Pair } from "./figures";
import type { Linkability } from "./useRoutes";

interface Props {
  found: Indicators;
  /** The routing strategies, and which of them is set. */
  routes: readonly string[];
  route: string;
  others: ReadonlyMap<string, Linkability | null>;
  onFind: (key: string) => void;
}

export function Expectations({ found, routes, route, others, onFind }: Props): ReactNode {
  return (
    <>
      <Cautions found={found} onFind={onFind} />
      <Linking found={found} routes={routes} route={route} others={others} />
      <Time found={found} />
      <Payload found={found} />
      <Reach found={found} />
      <Resources found={found} />
    </>
  );
}

function Cautions({ found, onFind }: { found: Indicators; onFind: (key: string) => void }): ReactNode {
  if (found.cautions.length === 0) return null;
  return (
    <div className="cautions">
      {found.cautions.map((caution) => (
        <Notice key={caution.key + caution.text} tone={caution.serious ? "warn" : "info"}>
          {caution.text} <button type="button" onClick={() => onFind(caution.key)}>{caution.key}</button>
        </Notice>
      ))}
    </div>
  );
}

function Linking({ found: { linkability, entropy }, routes, route, others }: Omit<Props, "onFind">): ReactNode {
  return (
    <section className="card">
      <h3>How often the last hop names the sender</h3>
      <div className="bars">
        {routes.map((each) => (
          <Route key={each} name={each} isChosen={each === route} linkability={each === route ? linkability : others.get(each)} />
        ))}
      </div>
      <p className="basis">By routing strategy, all else as it is; the tick marks guessing among those who may write. This one: {linkability.basis}.</p>
      <Pairs
        pairs={[
          { what: "Guessing is right", figure: linkability.guess.toFixed(3) },
          { what: "Packets held in a relay", figure: number(entropy.held_packets) },
          { what: "Path entropy", symbol: "H_path", figure: `${entropy.path_bits.toFixed(2)} bits` },
          { what: "Relay entropy, local", symbol: "H_relay", figure: `${entropy.local_relay_bits.toFixed(2)} bits` },
        ]}
      />
      <p className="basis">Entropies: {entropy.basis}; they describe parameters, not an adversary.</p>
    </section>
  );
}

const TELLING = 1.5;

function Route(props: { name: string; isChosen: boolean; linkability: Linkability | null | undefined }): ReactNode {
  const { name, isChosen, linkability } = props;
  const lastHop = linkability?.last_hop ?? null;
  const isTelling = linkability != null && lastHop !== null && lastHop > TELLING * linkability.guess;
  const text = linkability === undefined ? "…" : linkability === null ? "cannot work" : lastHop === null ? "not computed" : lastHop.toFixed(3);
  return (
    <Bar
      label={name}
      share={lastHop}
      text={text}
      tone={`${isChosen ? "chosen" : ""}${isTelling ? " poor" : ""}`}
      {...(linkability ? { mark: linkability.guess } : {})}
    />
  );
}

function Time({ found: { time, traffic, backend, resources, rounds } }: { found: Indicators }): ReactNode {
  const parts = [
    { label: "training", value: time.training_s, colour: "c2" },
    { label: "exchange", value: time.exchange_s, colour: "c1" },
    { label: "evaluation", value: time.evaluation_s, colour: "c3" },
  ];
  const pairs: Pair[] = [
    { what: "A round", figure: duration(time.round_s) },
    { what: `${count(rounds, "round")}${backend === "simulation" ? ", virtual time" : ""}`, figure: duration(time.run_s) },
    { what: "On this machine", figure: duration(resources.wall_s) },
    { what: "Round trip of a fragment", figure: duration(time.round_trip_s) },
    { what: "Deadline of an exchange", figure: duration(time.deadline_s) },
    { what: "Sent a node and round", figure: bytes(traffic.bytes_per_round) },
    { what: "Of it cover", figure: percent(traffic.cover_share, 0) },
    { what: "Packet", figure: `${number(traffic.packet_bytes)} B` },
  ];
  return (
    <section className="card">
      <h3>Time and traffic</h3>
      <Split parts={parts} write={duration} />
      <Pairs pairs={pairs} />
      <p className="basis">{time.basis}.</p>
    </section>
  );
}

function Payload({ found: { fragments } }: { found: Indicators }): ReactNode {
  const codecs = Object.entries(fragments.by_codec);
  const most = Math.max(1, ...codecs.map(([, many]) => many));
  return (
    <section className="card">
      <h3>Fragments a model, by codec</h3>
      {codecs.length > 0 ? (
        <div className="bars">
          {codecs.map(([codec, many]) => (
            <Bar key={codec} label={codec} share={many / most} text={number(many)} tone={codec === fragments.codec ? "chosen" : ""} />
          ))}
        </div>
      ) : (
        <p className="soft small">Not known before the run: the learner is your own.</p>
      )}
      <p className="basis">
        {fragments.model}
        {fragments.values !== null && `, ${number(fragments.values)} values`}; a node sends {number(fragments.per_round)} fragments a round.
      </p>
    </section>
  );
}

function Reach({ found: { graph, exchange, robustness } }: { found: Indicators }): ReactNode {
  const degree = graph.degree_min === graph.degree_max ? String(graph.degree_min) : `${graph.degree_min}–${graph.degree_max}`;
  const pairs: Pair[] = [
    { what: "Nodes, links", figure: `${number(graph.nodes)}, ${number(graph.links)}` },
    { what: "Degree, diameter", figure: `${degree}, ${graph.diameter}` },
    { what: "Peers that routes reach", figure: number(exchange.reachable_mean) },
    { what: "Partners of a node", figure: number(exchange.partners_mean) },
    { what: `Candidates a range for ${robustness.rule}`, figure: number(robustness.candidates) },
    { what: "FragKrum is feasible up to", symbol: "B", figure: String(robustness.tolerated) },
  ];
  if (exchange.joining + exchange.leaving > 0) pairs.push({ what: "Join later, leave earlier", figure: `${exchange.joining}, ${exchange.leaving}` });
  return (
    <section className="card">
      <h3>Reach and robustness</h3>
      {!robustness.feasible && (
        <p className="mistake">{robustness.rule} needs {robustness.needed} candidates and has {number(robustness.candidates)}.</p>
      )}
      <Pairs pairs={pairs} />
    </section>
  );
}

function Resources({ found: { resources } }: { found: Indicators }): ReactNode {
  const memory = resources.machine_memory_mib;
  return (
    <section className="card">
      <h3>What it asks of this machine</h3>
      <div className="bars">
        <Bar label="Memory" share={memory === null ? null : resources.memory_mib / memory} text={`${mebibytes(resources.memory_mib)}${memory === null ? "" : ` of ${mebibytes(memory)}`}`} tone={memory !== null && resources.memory_mib > memory ? "poor" : ""} />
        {resources.cores !== null && (
          <Bar label="Cores" share={resources.cores / resources.machine_cores} text={`${number(resources.cores)} of ${resources.machine_cores}`} tone={resources.cores > resources.machine_cores ? "poor" : ""} />
        )}
      </div>
      <p className="basis">{resources.basis}.</p>
    </section>
  );
}
