// A Prettier plugin: formats the dashboard's html`…` templates by htm's rules for white space.
//
// htm drops white space that holds a line break at the edge of a text, and keeps all other. So a line may be
// broken between two neighbours without a space, and between two words of a text, but never at a text's edge.

import { doc } from "prettier";
import { printers as prettier } from "prettier/plugins/estree";

const { fill, group, hardline, indent, join, line, softline } = doc.builders;

export const printers = {
  estree: {
    ...prettier.estree,
    embed(path, options) {
      const isHtm = path.node.type === "TemplateLiteral" && path.parent.tag?.name === "html";
      return isHtm ? (_textToDoc, print) => printTemplate(path, print) : prettier.estree.embed?.(path, options);
    },
  },
};

// --- reading -------------------------------------------------------------------------------------

/** Characters and holes of a template, one after the other. */
class Reader {
  constructor(quasis) {
    this.parts = quasis.flatMap(({ value }, i) => (i ? [{ hole: i - 1 }, value.raw] : [value.raw]));
    this.skipEmpty();
  }
  skipEmpty() {
    while (this.parts[0] === "") this.parts.shift();
  }
  get atEnd() {
    return this.parts.length === 0;
  }
  get atHole() {
    return typeof this.parts[0] === "object";
  }
  sees(text) {
    return !this.atHole && !this.atEnd && this.parts[0].startsWith(text);
  }
  /** What a pattern matches here, or "". */
  take(pattern) {
    const found = this.atHole || this.atEnd ? "" : (new RegExp(pattern.source, "y").exec(this.parts[0])?.[0] ?? "");
    if (found) this.parts[0] = this.parts[0].slice(found.length);
    this.skipEmpty();
    return found;
  }
  takeHole() {
    const { hole } = this.parts.shift();
    this.skipEmpty();
    return { hole };
  }
}

/** Children up to the closing tag or the end. */
function readChildren(reader) {
  const children = [];
  while (!reader.atEnd && !reader.sees("</")) {
    if (reader.atHole) children.push(reader.takeHole());
    else if (reader.sees("<")) children.push(readElement(reader));
    else children.push({ text: reader.take(/[^<]+/) });
  }
  return children;
}

function readElement(reader) {
  reader.take(/</);
  const name = reader.atHole ? reader.takeHole() : reader.take(/[^\s/>]+/);
  const attributes = [];
  for (;;) {
    reader.take(/\s+/);
    if (reader.atEnd) throw new Error("a tag is not closed"); // the template stays as it is
    if (reader.take(/\/>/)) return { name, attributes, children: null };
    if (reader.take(/>/)) break;
    attributes.push(readAttribute(reader));
  }
  const children = readChildren(reader);
  reader.take(/<\//);
  const close = reader.atHole ? [reader.takeHole()] : [reader.take(/[^>]*/)];
  reader.take(/>/);
  return { name, attributes, children, close };
}

/** name, name=value, ...${spread}: pieces of text and holes as they are. */
function readAttribute(reader) {
  const pieces = [];
  while (!reader.atEnd && (reader.atHole || !/^(\s|\/>|>)/.test(reader.parts[0]))) {
    if (reader.atHole) pieces.push(reader.takeHole());
    else if (reader.sees('"')) pieces.push(...readQuoted(reader));
    else pieces.push(reader.take(/\.{3}|=|[^\s/>="]+|\/(?!>)/));
  }
  return pieces;
}

function readQuoted(reader) {
  const pieces = [reader.take(/"/)];
  while (!reader.atEnd && !reader.sees('"')) pieces.push(reader.atHole ? reader.takeHole() : reader.take(/[^"]+/));
  return [...pieces, reader.take(/"/)];
}

// --- printing ------------------------------------------------------------------------------------

function printTemplate(path, print) {
  const reader = new Reader(path.node.quasis);
  const children = readChildren(reader);
  const holes = path.map((hole) => printHole(hole, print), "expressions");
  const single = children.length === 1 && children[0].text === undefined;
  return single ? ["`", printNode(children[0], holes), "`"] : group(["`", ...printChildren(children, holes), "`"]);
}

/** A template after && or || stays on its line. */
function printHole(path, print) {
  const { node } = path;
  const hugs = node.type === "LogicalExpression" && node.right.type === "TaggedTemplateExpression";
  const value = hugs ? [group(path.call(print, "left")), ` ${node.operator} `, path.call(print, "right")] : print();
  return ["${", value, "}"];
}

function printNode(node, holes) {
  if (node.hole !== undefined) return holes[node.hole];
  const pieces = (list) => list.map((piece) => (typeof piece === "string" ? piece : holes[piece.hole]));
  const name = pieces([node.name]);
  const attributes = node.attributes.map(pieces);
  const inner = attributes.length ? indent([line, join(line, attributes)]) : "";
  if (!node.children) return group(["<", name, inner, line, "/>"]);
  const open = group(["<", name, inner, attributes.length ? softline : "", ">"]);
  return group([open, ...printChildren(node.children, holes), "</", ...pieces(node.close), ">"]);
}

/** Runs of children that no line may part, one below the other where they do not fit on one line. */
function printChildren(children, holes) {
  const runs = runsOf(children);
  if (!runs.length) return [];
  const [first, last] = [runs[0], runs[runs.length - 1]];
  const body = runs.map((run, i) => [i ? run.before : first.isTight ? "" : run.before, printRun(run.nodes, holes)]);
  return [indent(body), last.endsTight ? "" : softline];
}

/** Groups children: a run ends where neighbours touch without a space, or where the source breaks the line. */
function runsOf(children) {
  const runs = [];
  let breaks = true;
  let pending = softline;
  for (const [i, node] of children.entries()) {
    if (node.text === undefined) {
      const touchesText = children[i - 1]?.text !== undefined && !breaks;
      if (runs.length && touchesText) runs.at(-1).nodes.push(node);
      else runs.push({ before: pending, nodes: [node] });
      [breaks, pending] = [true, softline];
      continue;
    }
    const text = node.text.replace(/^\s*\n\s*|\s*\n\s*$/g, "");
    const [starts, ends] = [/^\s*\n/.test(node.text), /\n\s*$/.test(node.text)];
    if (!text) {
      pending = starts ? hardline : softline;
      continue;
    }
    const piece = { text };
    if (runs.length && !starts) runs.at(-1).nodes.push(piece);
    else runs.push({ before: starts ? hardline : softline, nodes: [piece], isTight: !runs.length && /^\s/.test(text) });
    [breaks, pending] = [ends, ends ? hardline : softline];
    if (i === children.length - 1 && /\s$/.test(text)) runs.at(-1).endsTight = true;
  }
  return runs;
}

/** Words and nodes in lines as full as they can be. */
function printRun(nodes, holes) {
  const parts = [[]];
  for (const node of nodes) {
    if (node.text === undefined) parts.at(-1).push(printNode(node, holes));
    else for (const [i, word] of wordsOf(node.text).entries()) i ? parts.push(line, [word]) : parts.at(-1).push(word);
  }
  return parts.length === 1 ? parts[0] : fill(parts);
}

/** The words of a text; the space at either edge belongs to the word beside it. */
function wordsOf(text) {
  const [, head, body, tail] = /^(\s*)(.*?)(\s*)$/s.exec(text);
  if (!body) return [head];
  const words = body.split(/ (?! )(?<!  )|\s*\n\s*/);
  words[0] = head + words[0];
  words[words.length - 1] += tail;
  return words;
}
