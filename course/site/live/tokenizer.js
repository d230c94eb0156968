// rlcourse/policy/tiny/tokenizer.json and chat_template.jinja: a text and its tokens.

export const PAD = 0, BOS = 1, EOS = 2, UNKNOWN = 3, USER = 5, ASSISTANT = 6;
const SPECIAL = 7; // tokens below this one are no text

export class Tokenizer {
  /** `vocabulary`: the tokens in the order of their ids; `pattern`: how a text is split. */
  constructor({ vocabulary, pattern }) {
    this.vocabulary = vocabulary;
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
    this.pattern = new RegExp(pattern, "gu");
  }

  encode(text) {
    return (text.match(this.pattern) ?? []).map((piece) => this.ids.get(piece) ?? UNKNOWN);
  }

  /** Text without special tokens. */
  decode(ids) {
    return ids.filter((id) => id >= SPECIAL).map((id) => this.vocabulary[id]).join("");
  }

  /** The tokens of a question, as the chat template puts it to the model. */
  prompt(question) {
    return [BOS, USER, ...this.encode(question), ASSISTANT];
  }
}
