// The sections of the form, with how much was changed in each and where something is wrong.

import type { ReactNode } from "react";
import type { Mistake } from "../../client/documents";
import type { FormSection } from "../../scenario/fields";
import { same, valueOf, type Tables } from "../../scenario/values";

interface Props {
  sections: readonly FormSection[];
  tables: Tables;
  base: Tables;
  mistakes: ReadonlyMap<string, Mistake>;
}

export function Contents({ sections, tables, base, mistakes }: Props): ReactNode {
  return (
    <nav className="contents side" aria-label="Sections of the form">
      {sections.map((section) => {
        const changed = section.fields.filter((field) => !same(valueOf(tables, field), valueOf(base, field))).length;
        const wrong = [...mistakes.keys()].filter((key) => key === section.name || key.startsWith(`${section.name}.`)).length;
        return (
          <a
            key={section.name}
            href={`#section-${section.name}`}
            onClick={(event) => {
              event.preventDefault();
              document.getElementById(`section-${section.name}`)?.scrollIntoView({ block: "start" });
            }}
          >
            {section.label}
            {wrong > 0 ? <span className="bad" title="mistakes">{wrong}</span> : changed > 0 && <span title="changed">{changed}</span>}
          </a>
        );
      })}
    </nav>
  );
}
