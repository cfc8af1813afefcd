// The picture of the topology on a canvas: links, packets on their way, nodes with their state.

import type { Edge, Point } from "./layout";
import type { Dot } from "./packets";

export interface DrawnNode {
  fill: string;
  /** Drawn as an outline only: it is not there. */
  hollow: boolean;
  attacker: boolean;
  dead: boolean;
}

export interface Scene {
  points: readonly Point[];
  edges: readonly Edge[];
  nodes: readonly DrawnNode[];
  dots: readonly Dot[];
  selected: number | null;
  hovered: number | null;
}

export interface Palette {
  edge: string;
  card: string;
  ink: string;
  bad: string;
  dot: string;
}

export interface View {
  width: number;
  height: number;
  radius: number;
  place: (point: Point) => Point;
}

export function viewOf(width: number, height: number, nodes: number): View {
  const radius = Math.max(2.5, Math.min(13, (Math.min(width, height) * 1.15) / Math.max(8, nodes)));
  const half = Math.min(width, height) / 2 - radius - 10;
  return { width, height, radius, place: ({ x, y }) => ({ x: width / 2 + x * half, y: height / 2 + y * half }) };
}

export function draw(ctx: CanvasRenderingContext2D, scene: Scene, view: View, palette: Palette): void {
  ctx.clearRect(0, 0, view.width, view.height);
  const at = scene.points.map(view.place);
  drawEdges(ctx, scene, at, palette);
  drawDots(ctx, scene.dots, at, view, palette);
  scene.nodes.forEach((node, index) => {
    const point = at[index];
    if (point !== undefined) drawNode(ctx, node, point, view.radius, palette);
  });
  if (view.radius >= 9) drawNumbers(ctx, scene, at, palette);
  for (const marked of [scene.hovered, scene.selected]) {
    const point = marked === null ? undefined : at[marked];
    if (point !== undefined) ring(ctx, point, view.radius + 4, palette.ink, 2);
  }
}

/** The node under a place of the canvas. */
export function nodeAt(x: number, y: number, points: readonly Point[], view: View): number | null {
  let nearest: number | null = null;
  let least = Math.max(12, view.radius + 5);
  points.forEach((point, index) => {
    const at = view.place(point);
    const far = Math.hypot(at.x - x, at.y - y);
    if (far < least) {
      least = far;
      nearest = index;
    }
  });
  return nearest;
}

function drawEdges(ctx: CanvasRenderingContext2D, scene: Scene, at: readonly Point[], palette: Palette): void {
  const isMany = scene.edges.length > 600;
  ctx.strokeStyle = palette.edge;
  const path = (edges: readonly Edge[]): void => {
    ctx.beginPath();
    for (const [one, other] of edges) {
      const a = at[one];
      const b = at[other];
      if (!a || !b) continue;
      ctx.moveTo(a.x, a.y);
      ctx.lineTo(b.x, b.y);
    }
    ctx.stroke();
  };
  ctx.lineWidth = 1;
  ctx.globalAlpha = isMany ? 0.14 : 0.42;
  path(scene.edges);
  const marked = scene.hovered ?? scene.selected;
  if (marked !== null) {
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1.6;
    path(scene.edges.filter(([one, other]) => one === marked || other === marked));
  }
  ctx.globalAlpha = 1;
}

function drawDots(ctx: CanvasRenderingContext2D, dots: readonly Dot[], at: readonly Point[], view: View, palette: Palette): void {
  ctx.fillStyle = palette.dot;
  const size = Math.max(2, Math.min(3.5, view.radius / 2.5));
  for (const dot of dots) {
    const from = at[dot.from];
    const to = at[dot.to];
    if (!from || !to) continue;
    // Slow near both ends, as if it were handed over.
    const way = dot.at * dot.at * (3 - 2 * dot.at);
    ctx.globalAlpha = Math.min(1, 6 * dot.at, 6 * (1 - dot.at));
    ctx.beginPath();
    ctx.arc(from.x + (to.x - from.x) * way, from.y + (to.y - from.y) * way, size, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function drawNode(ctx: CanvasRenderingContext2D, node: DrawnNode, { x, y }: Point, radius: number, palette: Palette): void {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.fillStyle = node.hollow ? palette.card : node.fill;
  ctx.fill();
  ctx.lineWidth = node.hollow ? 1.5 : 1;
  ctx.strokeStyle = node.hollow ? node.fill : palette.card;
  ctx.setLineDash(node.hollow ? [3, 2] : []);
  ctx.stroke();
  ctx.setLineDash([]);
  if (node.attacker) ring(ctx, { x, y }, radius + 2.5, palette.bad, 2);
  if (node.dead) {
    const arm = radius * 0.5;
    ctx.strokeStyle = palette.card;
    ctx.lineWidth = Math.max(1.5, radius / 5);
    ctx.beginPath();
    ctx.moveTo(x - arm, y - arm);
    ctx.lineTo(x + arm, y + arm);
    ctx.moveTo(x + arm, y - arm);
    ctx.lineTo(x - arm, y + arm);
    ctx.stroke();
  }
}

function drawNumbers(ctx: CanvasRenderingContext2D, scene: Scene, at: readonly Point[], palette: Palette): void {
  ctx.font = '600 10px "Inter", system-ui, sans-serif';
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  scene.nodes.forEach((node, index) => {
    const point = at[index];
    if (!point || node.dead) return;
    ctx.fillStyle = node.hollow ? palette.ink : readable(node.fill);
    ctx.fillText(String(index), point.x, point.y + 0.5);
  });
}

function ring(ctx: CanvasRenderingContext2D, { x, y }: Point, radius: number, stroke: string, width: number): void {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.strokeStyle = stroke;
  ctx.lineWidth = width;
  ctx.stroke();
}

/** Black or white, whichever is easier to read on this `#rrggbb`. */
function readable(fill: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((from) => linear(Number.parseInt(fill.slice(from, from + 2), 16) / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#11161c" : "#ffffff";
}

function linear(share: number): number {
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
