#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/allowance.h"
#include "text/added_tokens.h"
#include "text/bert_normalizer.h"
#include "text/sequence_template.h"
#include "text/word_model.h"
#include "text/wordpiece.h"

namespace stretto::text {

/// All that defines a tokenizer of BERT's kind (WordPiece), GPT-2's (byte-level BPE) or Llama's
/// (SentencePiece's BPE of characters), as a `tokenizer.json` of Hugging Face's `tokenizers` has
/// it.
struct TokenizerSpec {
  enum class Model : uint8_t { kWordPiece, kByteBpe, kCharacterBpe };
  /// `##` and BERT's spaces before punctuation; bytes; marks of spaces, U+2581, and `<0x0A>` for
  /// bytes; or pieces with spaces between them.
  enum class Decoder : uint8_t { kSpaces, kWordPiece, kBytes, kMarks };
  /// By which pattern text is split (text/word_splits.h).
  enum class Pattern : uint8_t { kGpt2, kLlama3, kQwen2 };
  /// What gets a mark of a space in front, with kCharacterBpe: nothing; the beginning of a text, or
  /// each text between special tokens, unless it begins with a space; or each such text.
  enum class SpacePrefix : uint8_t { kNever, kFirst, kAlways, kDoubled };

  Model model = Model::kWordPiece;
  PieceIds vocab = {};  ///< by ascending id
  std::optional<std::string> unk_token = {};

  std::string continuing_prefix = "##";  ///< of WordPiece
  int64_t max_word_chars = 100;          ///< of WordPiece

  std::vector<std::pair<std::string, std::string>> merges = {};  ///< of BPE, earliest first
  bool fuse_unk = false, ignore_merges = false;                  ///< of BPE
  /// With kCharacterBpe a character without a piece is spelt by bytes, `<0xE2>`, where all of them
  /// are pieces.
  bool byte_fallback = false;
  SpacePrefix space_prefix = SpacePrefix::kNever;

  std::optional<BertNormalizerOptions> normalizer = {};
  bool nfc = false;               ///< of kByteBpe: text is composed first (Unicode's form C)
  bool add_prefix_space = false;  ///< of kByteBpe: text that does not begin with a space gets one
  bool use_regex = true;          ///< of kByteBpe: text is split by the pattern
  Pattern pattern = Pattern::kGpt2;  ///< of kByteBpe

  /// For BPE: offsets leave out the spaces of a piece. The value says whether the one space before
  /// the first word counts as added, and stays.
  std::optional<bool> trim_offsets = {};

  std::vector<AddedToken> added = {};
  SequenceTemplate sequences = {};

  Decoder decoder = Decoder::kSpaces;
  std::string decoder_prefix = "##";
  bool decoder_cleanup = true;
  bool decoder_strips = true;  ///< of kMarks: the one space in front of a text is left out
};

/// Reads `tokenizer.json`. Throws Error(kBadData) with the field's name for whatever is broken, or
/// is not supported: truncation, padding, other models, normalizers, pre-tokenizers, and fields
/// that it does not know. Likewise for a piece or an added token of more than 64 KiB, and for what
/// would take more memory than an Allowance has; the second form is part of a larger reading.
TokenizerSpec parse_tokenizer_json(std::string_view bytes, std::string_view where);
TokenizerSpec parse_tokenizer_json(std::string_view bytes, std::string_view where,
                                   Allowance& allowance);

/// The regular expression of a pattern, as a `tokenizer.json` has it. GPT-2's stands in none.
std::string regex_of(TokenizerSpec::Pattern pattern);

/// The same as text; parse_tokenizer_json() and the package give it back.
std::string write_tokenizer_json(const TokenizerSpec& spec);

/// BERT's `vocab.txt`: a token a line, one of which must be `[UNK]`; `[CLS]`, `[SEP]`, `[PAD]` and
/// `[MASK]` get their meaning where they occur. The last of equal lines counts.
///
/// @param lowercase  not given = as the vocabulary shows: no, if more than
/// one token in a hundred has a capital letter
TokenizerSpec parse_vocab_txt(std::string_view bytes, std::string_view where,
                              std::optional<bool> lowercase = {});
TokenizerSpec parse_vocab_txt(std::string_view bytes, std::string_view where,
                              std::optional<bool> lowercase, Allowance& allowance);

/// GPT-2's `vocab.json` and `merges.txt`: ids of tokens, and a merge a line. Special tokens in the
/// text are text.
TokenizerSpec parse_vocab_json(std::string_view vocab_bytes, std::string_view vocab_where,
                               std::string_view merges_bytes, std::string_view merges_where,
                               bool add_prefix_space = false);
TokenizerSpec parse_vocab_json(std::string_view vocab_bytes, std::string_view vocab_where,
                               std::string_view merges_bytes, std::string_view merges_where,
                               bool add_prefix_space, Allowance& allowance);

/// A SentencePiece model of BPE as Llama's first tokenizers and Mistral's are, as
/// LlamaTokenizerFast of `transformers` 4.57 reads it. Pieces keep their ids. Whatever two pieces
/// make a third is a merge, of the best score first. Control pieces and those that a user defined
/// are added tokens; templates are for the caller to say. Not read are normalisation and the other
/// settings of the model: a mark stands in front of each text.
///
/// Throws Error(kBadData) for a broken model, one of another kind than BPE, a piece that is not
/// UTF-8 or has more than 512 bytes, and as Allowance::take() does.
TokenizerSpec parse_sentencepiece_bpe(const std::string& bytes, std::string_view where,
                                      Allowance& allowance);

class Tokenizer;

/// Throws Error(kBadData) for merges of pieces that are not in the vocabulary.
std::unique_ptr<const WordModel> make_word_model(const TokenizerSpec& spec, std::string_view where);

/// @param where        the file, for messages
/// @param fingerprint  of all that the file says
/// Throws Error(kBadData) for such merges, and for added tokens that are normalised to the same
/// text.
std::shared_ptr<const Tokenizer> make_spec_tokenizer(const TokenizerSpec& spec,
                                                     std::string_view where, uint64_t fingerprint);

}  // namespace stretto::text
