// What the scenario promises, beside the form, and made anew while one types.

import type { ReactNode } from "react";
import type { Indicators } from "../../client/documents";
import { bytes, count, duration, mebibytes, number, percent } from "../../lib/format";
import { Notice } from "../../ui/parts";
import { Bar, Pairs, Split, type Pair } from "./figures";

export function Expectations({ found, onFind }: { found: Indicators; onFind: (key: string) => void }): ReactNode {
  return (
    <>
      <Cautions found={found} onFind={onFind} />
      <Linking found={found} />
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

function Linking({ found: { linkability, entropy } }: { found: Indicators }): ReactNode {
  const isTelling = linkability.last_hop !== null && linkability.last_hop > 1.5 * linkability.guess;
  return (
    <section className="card">
      <h3>What may be linked</h3>
      <div className="bars">
        <Bar label="Last hop names the sender" share={linkability.last_hop} text={linkability.last_hop === null ? "not computed" : linkability.last_hop.toFixed(3)} tone={isTelling ? "poor" : "chosen"} mark={linkability.guess} />
        <Bar label="Guessing does" share={linkability.guess} text={linkability.guess.toFixed(3)} />
      </div>
      <Pairs
        pairs={[
          { what: "Packets held in a relay", figure: number(entropy.held_packets) },
          { what: "Path entropy", symbol: "H_path", figure: `${entropy.path_bits.toFixed(2)} bits` },
          { what: "Relay entropy, local", symbol: "H_relay", figure: `${entropy.local_relay_bits.toFixed(2)} bits` },
        ]}
      />
      <p className="basis">Last hop: {linkability.basis}. Entropies: {entropy.basis}; they describe parameters, not an adversary.</p>
    </section>
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
