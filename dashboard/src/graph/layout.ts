// Where nodes lie, in a square from −1 to 1. A circle shows the order of a circulant; other graphs find their own shape.
//
// Equal graphs give equal pictures: nothing here is drawn at random.

export interface Point {
  x: number;
  y: number;
}

export type Edge = readonly [number, number];

const CIRCULAR: ReadonlySet<string> = new Set(["circulant", "ring", "full", "small_world"]);
const FORCED_UP_TO = 400;
const STEPS = 220;

export function layout(nodes: number, edges: readonly Edge[], family: string): Point[] {
  const circle = Array.from({ length: nodes }, (_, node) => onCircle(node, nodes));
  if (CIRCULAR.has(family) || nodes > FORCED_UP_TO || edges.length === 0) return circle;
  return fit(forced(circle, edges));
}

function onCircle(node: number, nodes: number): Point {
  const angle = (2 * Math.PI * node) / nodes - Math.PI / 2;
  return { x: Math.cos(angle), y: Math.sin(angle) };
}

/** Springs along links, repulsion between all, cooling down (after Fruchterman and Reingold). */
function forced(start: readonly Point[], edges: readonly Edge[]): Point[] {
  const nodes = start.length;
  const at = start.map(({ x, y }, node) => ({ x: x * (0.6 + ((node * 7) % 10) / 25), y: y * (0.6 + ((node * 3) % 10) / 25) }));
  const wanted = Math.sqrt(3 / nodes);
  for (let step = 0; step < STEPS; step += 1) {
    const push = at.map(() => ({ x: 0, y: 0 }));
    for (let one = 0; one < nodes; one += 1) {
      for (let other = one + 1; other < nodes; other += 1) pull(at, push, one, other, (far) => -(wanted * wanted) / far);
    }
    for (const [one, other] of edges) pull(at, push, one, other, (far) => (far * far) / wanted);
    const heat = 0.12 * (1 - step / STEPS);
    at.forEach((point, node) => {
      const { x, y } = push[node] ?? { x: 0, y: 0 };
      const far = Math.hypot(x, y) || 1;
      point.x += (x / far) * Math.min(far, heat);
      point.y += (y / far) * Math.min(far, heat);
    });
  }
  return at;
}

function pull(at: readonly Point[], push: Point[], one: number, other: number, force: (far: number) => number): void {
  const [a, b, pushA, pushB] = [at[one], at[other], push[one], push[other]];
  if (!a || !b || !pushA || !pushB) return;
  const x = b.x - a.x;
  const y = b.y - a.y;
  const far = Math.hypot(x, y) || 1e-6;
  const strength = force(far) / far;
  pushA.x += x * strength;
  pushA.y += y * strength;
  pushB.x -= x * strength;
  pushB.y -= y * strength;
}

function fit(points: readonly Point[]): Point[] {
  const xs = points.map(({ x }) => x);
  const ys = points.map(({ y }) => y);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = 2 / Math.max(right - left, bottom - top, 1e-6);
  return points.map(({ x, y }) => ({ x: (x - (left + right) / 2) * scale, y: (y - (top + bottom) / 2) * scale }));
}
