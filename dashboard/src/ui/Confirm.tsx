// A question before something that cannot be taken back.

import { useEffect, useId, useRef, type ReactNode } from "react";

interface Props {
  isOpen: boolean;
  title: string;
  action: string;
  children: ReactNode;
  onYes: () => void;
  onNo: () => void;
}

export function Confirm({ isOpen, title, action, children, onYes, onNo }: Props): ReactNode {
  return (
    <Dialog isOpen={isOpen} title={title} onClose={onNo}>
      <p>{children}</p>
      <div className="actions">
        <button type="button" className="button" onClick={onNo}>Cancel</button>
        <button type="button" className="button danger" onClick={onYes}>{action}</button>
      </div>
    </Dialog>
  );
}

export function Dialog({ isOpen, title, onClose, children }: { isOpen: boolean; title: string; onClose: () => void; children: ReactNode }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    if (element === null) return;
    if (isOpen && !element.open) element.showModal();
    if (!isOpen && element.open) element.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      {isOpen && (
        <>
          <h2 id={id}>{title}</h2>
          {children}
        </>
      )}
    </dialog>
  );
}
