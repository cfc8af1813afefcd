// The scenarios that come with the package, to begin with.

import type { ReactNode } from "react";
import type { Preset } from "../../client/documents";

interface Props {
  presets: readonly Preset[];
  chosen: string;
  onChoose: (preset: Preset) => void;
}

export function Presets({ presets, chosen, onChoose }: Props): ReactNode {
  return (
    <div className="presets" role="radiogroup" aria-label="Preset to begin with">
      {presets.map((preset) => (
        <label className="preset" key={preset.name}>
          <input type="radio" name="preset" value={preset.name} checked={preset.name === chosen} onChange={() => onChoose(preset)} />
          <strong>{preset.name}</strong>
          <p>{preset.says}</p>
        </label>
      ))}
    </div>
  );
}
