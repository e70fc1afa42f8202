#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"

namespace stretto::text {

/// What the published models of one kind expect of their tokenizer. A vocabulary alone says neither
/// which of its tokens are special nor what stands around a text; a tokenizer.json says both.
struct PretrainedKind {
  TokenizerSpec::Model model;
  /// Special wherever the vocabulary has them. A vocabulary that is trained begins with them.
  std::span<const std::string_view> specials;
  /// The one of them that takes the spaces in front of it along; empty = none does.
  std::string_view lstripped = {};
  /// What stands around a text, and around and between two: the tokens with spaces between them,
  /// `$A` and `$B` for the texts, each with its segment behind a colon unless that is 0:
  /// "[CLS] $A [SEP] $B:1 [SEP]:1". Empty = texts stand alone.
  std::string_view single = {}, pair = {};
  /// Whether `transformers` trims the offsets of a vocabulary and merges:
  /// TokenizerSpec::trim_offsets is add_prefix_space then.
  bool trims_offsets = false;
};

/// BERT's (Devlin et al. 2019), RoBERTa's (Liu et al. 2019) and GPT-2's (Radford et al. 2019).
extern const PretrainedKind kBertKind, kRobertaKind, kGpt2Kind;

/// Makes a spec with a vocabulary one of this kind: decoder, special tokens, and what stands around
/// texts, as far as the vocabulary has the tokens.
void make_pretrained(TokenizerSpec& spec, const PretrainedKind& kind);
/// The same for BERT, with its normaliser and its unknown token.
void make_bert(TokenizerSpec& spec, bool lowercase);

/// Sets what stands around texts, of the added tokens. Nothing changes where one of them is not
/// there, or the kind has no template.
void set_sequences(TokenizerSpec& spec, const PretrainedKind& kind);

/// The tokens around one text, in their order: "[CLS]", "[SEP]".
std::vector<std::string> tokens_around_text(const PretrainedKind& kind);
/// The template of one text for people: "[CLS] text [SEP]", "<s>text</s>".
std::string shown_template(const PretrainedKind& kind);

}  // namespace stretto::text
