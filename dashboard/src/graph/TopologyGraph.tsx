// The topology, alive: a canvas that follows the run's store by itself, so that no frame waits for React.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from "react";
import { colour, useTheme } from "../app/theme";
import { isLive } from "../client/documents";
import { number } from "../lib/format";
import type { RunStore } from "../live/store";
import { draw, nodeAt, viewOf, type DrawnNode, type Palette, type Scene } from "./draw";
import { layout, type Edge } from "./layout";
import { Packets } from "./packets";
import { SHADES, shadeValue, STATES, stateLabel, stateOf, tone, type Shade } from "./shades";

interface Props {
  store: RunStore;
  edges: readonly Edge[];
  family: string;
  /** Whether packets go to anybody, not only along the links of the topology. */
  toAnybody: boolean;
  shade: Shade;
  selected: number | null;
  onSelect: (node: number | null) => void;
  onOpen: (node: number) => void;
}

export function TopologyGraph(props: Props): ReactNode {
  const { store, edges, family, toAnybody, shade, selected, onSelect, onOpen } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState<{ node: number; x: number; y: number } | null>(null);
  const [perDot, setPerDot] = useState<number | null>(null);
  const [theme] = useTheme();
  const points = useMemo(() => layout(store.nodes.length, edges, family), [store, edges, family]);
  const neighbours = useMemo(() => neighboursOf(store.nodes.length, edges), [store, edges]);
  const marked = useRef({ selected, hovered: hovered?.node ?? null });
  useEffect(() => {
    marked.current = { selected, hovered: hovered?.node ?? null };
  }, [selected, hovered]);

  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d") ?? null;
    if (element === null || ctx === null) return undefined;
    const palette = paletteOf();
    const packets = new Packets();
    const isStill = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const target = (from: number, random: number): number | null => {
      if (toAnybody) return Math.floor(random * store.nodes.length);
      const near = neighbours[from] ?? [];
      return near[Math.floor(random * near.length)] ?? null;
    };
    let nodes: DrawnNode[] = [];
    let seen = -1;
    let before = performance.now();
    let frame = 0;
    const step = (now: number): void => {
      frame = requestAnimationFrame(step);
      const elapsed_s = Math.min(0.1, (now - before) / 1000);
      before = now;
      if (store.version !== seen) {
        seen = store.version;
        nodes = drawn(store, shade);
      }
      const isRunning = isLive(store.status) && !isStill;
      packets.step(elapsed_s, isRunning ? ratesOf(store) : [], target);
      setPerDot(isRunning && packets.dots.length > 0 ? packets.perDot : null);
      const view = resize(element, ctx, store.nodes.length);
      const scene: Scene = { points, edges, nodes, dots: packets.dots, ...marked.current };
      draw(ctx, scene, view, palette);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [store, edges, points, neighbours, shade, toAnybody, theme]);

  const at = (event: PointerEvent): number | null => {
    const box = event.currentTarget.getBoundingClientRect();
    return nodeAt(event.clientX - box.left, event.clientY - box.top, points, viewOf(box.width, box.height, store.nodes.length));
  };
  const hover = (event: PointerEvent): void => {
    const node = at(event);
    const box = event.currentTarget.getBoundingClientRect();
    setHovered(node === null ? null : { node, x: event.clientX - box.left, y: event.clientY - box.top });
  };
  const press = (event: KeyboardEvent): void => {
    const many = store.nodes.length;
    const moved: Record<string, number> = {
      ArrowRight: ((selected ?? -1) + 1) % many,
      ArrowDown: ((selected ?? -1) + 1) % many,
      ArrowLeft: ((selected ?? many) + many - 1) % many,
      ArrowUp: ((selected ?? many) + many - 1) % many,
      Home: 0,
      End: many - 1,
    };
    const next = moved[event.key];
    if (next !== undefined) onSelect(next);
    else if (event.key === "Enter" && selected !== null) onOpen(selected);
    else if (event.key === "Escape") onSelect(null);
    else return;
    event.preventDefault();
  };

  return (
    <div className="graph">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Topology of ${store.nodes.length} nodes. Arrow keys choose a node, Enter opens its page.`}
        onPointerMove={hover}
        onPointerLeave={() => setHovered(null)}
        onClick={(event) => onSelect(at(event as unknown as PointerEvent))}
        onDoubleClick={() => selected !== null && onOpen(selected)}
        onKeyDown={press}
      />
      {hovered !== null && <Tip store={store} shade={shade} {...hovered} />}
      <p className="dots soft small">
        {perDot === null
          ? isLive(store.status) ? "No packets measured yet." : "The run is over: nothing is on its way."
          : `One dot: ${perDot === 1 ? "a packet" : `${number(perDot)} packets`}, sent as fast as measured; where each goes is drawn at random, because nobody can know it.`}
      </p>
    </div>
  );
}

function Tip({ store, shade, node, x, y }: { store: RunStore; shade: Shade; node: number; x: number; y: number }): ReactNode {
  const state = store.nodes[node];
  if (state === undefined) return null;
  const option = SHADES.find(({ value }) => value === shade);
  const value = shadeValue(shade, state, store);
  return (
    <div className="tip" style={{ left: x, top: y }}>
      <strong>Node {node}</strong> · {stateLabel(stateOf(state, store))}
      {state.round > 0 && `, round ${state.round}`}
      {value !== null && shade !== "round" && option && ` · ${option.label.toLowerCase()} ${option.format(value)}`}
      {state.poisons && " · poisons"}
    </div>
  );
}

function drawn(store: RunStore, shade: Shade): DrawnNode[] {
  const values = store.nodes.map((node) => shadeValue(shade, node, store));
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return store.nodes.map((node, index) => {
    const state = stateOf(node, store);
    const value = values[index] ?? null;
    const byState = shade === "state" || state === "dead" || state === "left" || state === "absent";
    const name = byState ? (STATES[state]?.colour ?? "c6") : value === null ? "grid" : tone(value, low, high);
    return {
      fill: colour(name),
      hollow: state === "absent" || state === "left",
      attacker: node.poisons,
      dead: state === "dead",
    };
  });
}

function ratesOf(store: RunStore): number[] {
  return store.nodes.map((node) => (node.presence === "present" ? (node.gauges.get("packets_per_s") ?? 0) : 0));
}

function neighboursOf(nodes: number, edges: readonly Edge[]): number[][] {
  const found: number[][] = Array.from({ length: nodes }, () => []);
  for (const [one, other] of edges) {
    found[one]?.push(other);
    found[other]?.push(one);
  }
  return found;
}

function resize(element: HTMLCanvasElement, ctx: CanvasRenderingContext2D, nodes: number): ReturnType<typeof viewOf> {
  const { clientWidth: width, clientHeight: height } = element;
  const pixel = window.devicePixelRatio || 1;
  if (element.width !== Math.round(width * pixel) || element.height !== Math.round(height * pixel)) {
    element.width = Math.round(width * pixel);
    element.height = Math.round(height * pixel);
  }
  ctx.setTransform(pixel, 0, 0, pixel, 0, 0);
  return viewOf(width, height, nodes);
}

function paletteOf(): Palette {
  return { edge: colour("thin"), card: colour("card"), ink: colour("ink"), bad: colour("bad"), dot: colour("ink") };
}
