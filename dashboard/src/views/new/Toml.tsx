// Scenarios as TOML: the file that the command line takes, in and out.

import { useState, type ChangeEvent, type ReactNode } from "react";
import type { Mistake, Scenario } from "../../client/documents";
import { post, RequestError } from "../../client/request";
import type { Tables } from "../../scenario/values";
import { Dialog } from "../../ui/Confirm";
import { Icon } from "../../ui/icons";
import { Notice } from "../../ui/parts";

export function TomlButtons({ tables, onImport }: { tables: Tables; onImport: (tables: Tables) => void }): ReactNode {
  const [isImporting, setImporting] = useState(false);
  const [exported, setExported] = useState<{ toml: string } | { problem: string } | null>(null);
  const write = async (): Promise<void> => {
    try {
      setExported(await post("/api/scenario/to-toml", { scenario: tables as unknown as Scenario }));
    } catch (error) {
      setExported({ problem: error instanceof RequestError ? error.message : "That did not work." });
    }
  };
  return (
    <div className="actions">
      <button type="button" className="button" onClick={() => setImporting(true)}><Icon name="upload" /> Import TOML</button>
      <button type="button" className="button" onClick={() => void write()}><Icon name="download" /> Export TOML</button>
      <Dialog isOpen={isImporting} title="Import a scenario" onClose={() => setImporting(false)}>
        <Import
          onClose={() => setImporting(false)}
          onImport={(imported) => {
            setImporting(false);
            onImport(imported);
          }}
        />
      </Dialog>
      <Dialog isOpen={exported !== null} title="This scenario as TOML" onClose={() => setExported(null)}>
        {exported !== null && "problem" in exported && <Notice tone="bad">{exported.problem}</Notice>}
        {exported !== null && "toml" in exported && <Export toml={exported.toml} onClose={() => setExported(null)} />}
      </Dialog>
    </div>
  );
}

function Export({ toml, onClose }: { toml: string; onClose: () => void }): ReactNode {
  const [isCopied, setCopied] = useState(false);
  const file = `data:application/toml;charset=utf-8,${encodeURIComponent(toml)}`;
  return (
    <>
      <p className="soft small">Complete, defaults included: <code>unlinkabledfl run scenario.toml</code> runs the same.</p>
      <textarea readOnly rows={16} value={toml} aria-label="The scenario as TOML" className="toml" />
      <div className="actions">
        <button type="button" className="button" onClick={() => void navigator.clipboard.writeText(toml).then(() => setCopied(true))}>
          <Icon name="copy" /> {isCopied ? "Copied" : "Copy"}
        </button>
        <a className="button primary" href={file} download="scenario.toml"><Icon name="download" /> Save as file</a>
        <button type="button" className="button" onClick={onClose}>Close</button>
      </div>
    </>
  );
}

function Import({ onImport, onClose }: { onImport: (tables: Tables) => void; onClose: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [mistakes, setMistakes] = useState<readonly Mistake[]>([]);
  const open = async (event: ChangeEvent<HTMLInputElement>): Promise<void> => {
    const file = event.target.files?.[0];
    if (file) setText(await file.text());
  };
  const read = async (): Promise<void> => {
    setProblem(null);
    try {
      const found = await post("/api/scenario/from-toml", { toml: text });
      setMistakes(found.mistakes);
      if (found.scenario !== null) onImport(found.scenario as unknown as Tables);
    } catch (error) {
      setProblem(error instanceof RequestError ? error.message : "That did not work.");
    }
  };
  return (
    <>
      <p className="soft small">A scenario file. It may begin with a preset, such as <code>preset = "paper"</code>, and say only what differs.</p>
      <label className="button">
        <Icon name="upload" /> Choose a file
        <input type="file" accept=".toml,text/plain" className="unseen" onChange={(event) => void open(event)} />
      </label>
      <textarea rows={12} className="toml" value={text} aria-label="TOML" placeholder={'preset = "paper"\n\n[mixnet]\noutbox_size = 50'} onChange={(event) => setText(event.target.value)} />
      {problem !== null && <Notice tone="bad">{problem}</Notice>}
      {mistakes.map((mistake) => <p className="mistake" key={mistake.key}>{mistake.text}</p>)}
      <div className="actions">
        <button type="button" className="button" onClick={onClose}>Cancel</button>
        <button type="button" className="button primary" disabled={text.trim() === ""} onClick={() => void read()}>Import</button>
      </div>
    </>
  );
}
