#!/usr/bin/env python3
"""Makes tokenizers of the kinds that test_models_tokenizer.c reads, and the tokens that the `tokenizers` library finds.

usage: make_tokenizers.py OUT VOCABULARY TEXT...

Trains a small tokenizer of each kind on the TEXT files, and writes OUT/KIND/tokenizer.json and OUT/KIND/tokens.jsonl, a row
{"text", "ids"} for each of some hundred texts: random ones of awkward characters, and pieces of TEXT. Needs the Python
package `tokenizers` (0.23.3 made the files here: make_tokenizers.py . 450 ../../../README.md scripts.txt).
"""
import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = ["<0x%02X>" % byte for byte in range(256)]
MARK = "\u2581"


def split_bytes(expression):
    split = pre_tokenizers.Split(Regex(expression), behavior="isolated", invert=False)
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_fallback():
    return models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>")


# name: (model, normalizer, pre-tokenizer, special tokens, tokens around a text)
KINDS = {
    "gpt2": (models.BPE(), None, pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"], None),
    "prefix": (models.BPE(), None, pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "</s>"], "<s> $A </s>"),
    "gpt_neox": (models.BPE(), normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"], None),
    "llama3": (models.BPE(), None, split_bytes(CONTRACTIONS + WORDS % "{1,3}"), ["<|begin|>", "<|end|>"], "<|begin|> $A"),
    "qwen2": (models.BPE(), normalizers.NFC(), split_bytes(CONTRACTIONS + WORDS % ""), ["<|endoftext|>", "<|im_start|>"], None),
    "llama2": (byte_fallback(), normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]), None,
               ["<unk>", "<s>", "</s>"] + BYTES, "<s> $A"),
    "metaspace": (byte_fallback(), None, pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="first", split=False),
                  ["<unk>", "<s>", "</s>"] + BYTES, "<s> $A"),
    "words": (models.BPE(unk_token="<unk>", fuse_unk=False), normalizers.NFKC(),
              pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Digits(individual_digits=True)]), ["<unk>"], None),
    "gemma": (byte_fallback(), normalizers.Replace(" ", MARK), pre_tokenizers.Split(" ", "merged_with_previous"),
              ["<pad>", "<eos>", "<bos>", "<unk>"] + BYTES, "<bos> $A"),
    "removed": (models.BPE(), None, pre_tokenizers.Split(Regex(r"\s+"), "removed"), ["<s>"], None),
    "contiguous": (models.BPE(), None, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"[\s,.]"), "contiguous"),
                                                                 pre_tokenizers.Split("a", "merged_with_next")]), ["<s>"], None),
}
SPACES = [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, 0x180E, 0x2009, 0x2028, 0x200B, 0x202F, 0x3000, 0xFEFF, 0x1C]
AWKWARD = [chr(c) for c in SPACES] * 2 + list("abcXY09'.,-_sStTlLdD(){}") * 2 + list(
    "\u00e9\u00df\u017f\u212a\u4f60\u0627\u0663\u2167\u00bd\u200d\u0130\u2581\u24d0<|>") + ["e\u0301", "\U0001f600"]


def texts_to_encode(pieces, special):
    texts = ["".join(random.choice(AWKWARD) for _ in range(random.randint(0, 14))) for _ in range(220)]
    texts += random.sample(pieces, min(20, len(pieces)))
    texts += [f"{special}x <tool>  na\u00efve na\u00efvety{special}", " hello hello", "", "<tool>", "x  <tool>\n\ny", "na\u00efve-na\u00efve"]
    return texts


def train(kind, size, pieces):
    model, normalizer, pre_tokenizer, special, template = KINDS[kind]
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    in_bytes = "ByteLevel" in str(pre_tokenizer)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if in_bytes else []
    words = pieces if pre_tokenizer else [word for piece in pieces for word in piece.split(" ")]
    tokenizer.train_from_iterator(
        words, trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, initial_alphabet=alphabet))
    if template:
        around = [(token, tokenizer.token_to_id(token)) for token in template.split() if token != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=around)
    tokenizer.add_tokens([AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False),
                          AddedToken("na\u00efve", single_word=True, normalized=True)])
    return json.loads(tokenizer.to_str()), special[-1]


def main():
    out, size, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    random.seed(7)
    pieces = [piece for path in paths for piece in open(path, encoding="utf-8").read().split("\n\n")]
    for kind in KINDS:
        tree, special = train(kind, size, pieces)
        tree["model"]["ignore_merges"] = kind == "llama3"
        if kind == "gpt2":
            tree["model"]["merges"] = [" ".join(merge) for merge in tree["model"]["merges"]]
        os.makedirs(f"{out}/{kind}", exist_ok=True)
        with open(f"{out}/{kind}/tokenizer.json", "w", encoding="utf-8") as file:
            json.dump(tree, file, ensure_ascii=False, separators=(",", ":"))
        tokenizer = Tokenizer.from_file(f"{out}/{kind}/tokenizer.json")
        with open(f"{out}/{kind}/tokens.jsonl", "w", encoding="utf-8") as file:
            for text in texts_to_encode(pieces, special):
                file.write(json.dumps({"text": text, "ids": tokenizer.encode(text).ids}) + "\n")


main()
