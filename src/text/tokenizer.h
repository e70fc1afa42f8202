#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/sequence_template.h"
#include "text/special_ids.h"
#include "text/subwords.h"
#include "text/tokenizer_options.h"

namespace stretto::text {

/// The ordinary pieces that a sub-word model cuts text into: no specials, bytes or symbols that a
/// user defined.
struct SubwordModel {
  enum class Kind : uint8_t { kNone, kBpe, kUnigram };
  struct Piece {
    std::string text;  ///< U+2581 stands for a space
    double score = 0;  ///< bpe: the larger, the earlier it is merged; unigram: log probability
    int64_t id = 0;
  };
  Kind kind = Kind::kNone;
  std::vector<Piece> pieces = {};
};

/// Code points [begin, end) of a line.
struct CodePointSpan {
  int64_t begin = 0, end = 0;
  bool operator==(const CodePointSpan&) const = default;
};

/// One side's way from text to ids and back. Safe to use from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Ids that stand for no text; the same as long as the tokenizer lives.
  virtual SpecialIds specials() const = 0;
  /// Appends ids without beginning- or end-of-sentence.
  virtual void encode(std::string_view line, std::vector<int64_t>& ids) const = 0;
  /// As encode(), and appends for each id where it stands in the line. A byte that is not UTF-8
  /// counts as a code point. Throws Error(kUsage) where the tokenizer does not know.
  virtual void encode_with_spans(std::string_view line, std::vector<int64_t>& ids,
                                 std::vector<CodePointSpan>& spans) const;
  /// Whether each of these places has a character. SentencePiece replaces some characters by
  /// several: of "ﬁ" it makes "f", whose place is empty, and "i".
  virtual bool fills_places() const { return true; }
  /// What a pretrained model of this tokenizer expects around one text, and around two.
  virtual SequenceTemplate sequences() const { return {}; }
  /// Text of the ids as people read it; specials are left out, but unknown ones show (" ⁇ ", or
  /// "<unk>").
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;
  /// How the text that encode() takes was split before it came: kNone where it is raw.
  virtual Subwords subwords() const { return Subwords::kNone; }
  /// A line as encode() takes it, as people read it.
  std::string readable(std::string_view line) const { return join_subwords(line, subwords()); }
  virtual std::string piece(int64_t id) const = 0;
  /// What text/subword_sampling.h draws from; of kind kNone where there are no other segmentations.
  virtual SubwordModel subword_model() const { return {}; }
  /// Number of ids; rows of an embedding table may be rounded up.
  virtual int64_t size() const = 0;
  /// Changes when any line could be encoded otherwise, or specials are; part of the cache key.
  virtual uint64_t fingerprint() const = 0;
  /// Whether a piece goes on with the word of the piece before it: WordPiece's `##ing`; elsewhere
  /// one that brings no space with it. Special and added tokens do not.
  virtual bool continues_word(int64_t /*id*/) const { return false; }
};

/// Both sides of a translation task.
struct TokenizerPair {
  std::shared_ptr<const Tokenizer> src, tgt;
  bool joint = false;                         ///< src and tgt share ids
  std::map<std::string, std::string> assets;  ///< file name -> bytes, for the run folder
};

/// Line after line of one side's training text; the caller reads the files.
struct LineSource {
  virtual ~LineSource() = default;
  virtual bool next(std::string& line) = 0;
  /// A hash of all that makes the lines, so that sources with the same one give the same lines; 0 =
  /// nobody knows. Throws as next().
  virtual uint64_t key() { return 0; }
};

/// Whether `options` names a model or a vocabulary; otherwise one is trained.
bool names_tokenizer(const TokenizerOptions& options);

/// Loads what `options` names, or trains SentencePiece on this text when it names nothing.
///
/// @param train_src  null where there is no training text; not read when `options` names something
/// @param train_tgt  null where the text has one side: both get the tokenizer that is trained on it
/// Throws Error(kUsage) for missing files, and where nothing is named and there is no text;
/// Error(kBadData) for malformed models or vocabularies.
TokenizerPair make_tokenizers(const TokenizerOptions& options, uint64_t seed, LineSource* train_src,
                              LineSource* train_tgt);

/// From the assets that a run folder holds. They, and not `options`, decide between models and
/// vocabularies: a run that began with another run's weights may have that run's kind.
TokenizerPair load_tokenizers(const TokenizerOptions& options,
                              const std::map<std::string, std::string>& assets);

/// Whether load_tokenizers() reads an asset of this name; a run folder may have others beside them.
bool is_tokenizer_asset(std::string_view name);

/// For each id of `now` the id of the same piece in `before`, or -1. Specials match those of their
/// kind, whatever their ids and pieces are.
std::vector<int64_t> match_pieces(const Tokenizer& now, const Tokenizer& before);

/// A SentencePiece model from bytes, checked first (piece lengths, counts, charsmap bounds).
/// Ids are remapped so that pad, unk, bos and eos come first whatever the model has.
std::shared_ptr<const Tokenizer> make_sentencepiece(std::string model_bytes,
                                                    std::string_view where);

/// The asset that holds MappedIds::begin, where it is not padding.
inline constexpr const char* kBeginPieceAsset = "begin.piece";

/// A `vocab.json`: pieces and their ids. The views are only read.
struct MappedIds {
  std::string_view bytes;
  std::string_view where;       ///< the file, for messages
  std::string_view begin = {};  ///< the piece that a decoder begins with; empty = `<pad>`
};

/// A SentencePiece model whose pieces have the ids of a `vocab.json`, as Marian's models of
/// `transformers` have them: two models, one for each side, may share one vocabulary. A piece that
/// the vocabulary lacks is unknown. `>>fra<<` at the beginning of a line is one piece: the language
/// that is wanted. A line cannot spell `</s>` and `<pad>`.
///
/// Throws Error(kBadData) for a broken model, and for a vocabulary that is broken, gives an id
/// twice, or lacks `<unk>`, `</s>`, `<pad>` or the piece of `begin`.
std::shared_ptr<const Tokenizer> make_mapped_sentencepiece(const std::string& model_bytes,
                                                           std::string_view where,
                                                           const MappedIds& ids);

/// WordPiece or byte-level BPE from a `tokenizer.json` (text/tokenizer_spec.h).
std::shared_ptr<const Tokenizer> make_json_tokenizer(std::string_view bytes,
                                                     std::string_view where);

/// Each character is a token: ids of code points from a JSON list of strings, in its order, behind
/// the four specials. What the list lacks is unknown. See text/characters.h.
/// Throws Error(kBadData) for a list that is broken, is empty, or has a character twice.
std::shared_ptr<const Tokenizer> make_characters(std::string_view bytes, std::string_view where);

/// Tokens split at spaces, ids from a file: one token a line, optionally with a count after a space
/// (fairseq's dict.txt). Its specials, if it lists them, are recognised; else the four come first.
/// @param subwords  "auto" = as find_subwords() finds in the tokens, else one of subwords_names()
std::shared_ptr<const Tokenizer> make_vocabulary(std::string_view file_bytes,
                                                 std::string_view where,
                                                 const std::string& subwords = "auto");

/// How the lines are drawn that train a model: of each source up to `max_lines`, by `seed`.
struct TrainingSample {
  int64_t max_lines = 2000000;
  uint64_t seed = 1;
};

/// Appends to `lines` what is drawn of one source: each line has the same chance (reservoir
/// sampling, Vitter 1985, algorithm R), and memory is bounded by the sample. Lines that are not
/// UTF-8, or hold nothing but white space, do not count.
///
/// @param number  of the source, from 1: each has a draw of its own. A run's source side is 1, its
///                target side 2, a joint model is trained on the lines of 1, then those of 2
void sample_lines(LineSource& source, uint64_t number, const TrainingSample& sample,
                  std::vector<std::string>& lines);

/// Trains a SentencePiece model; the result is the same for any number of threads.
struct SentencePieceTraining {
  std::string algorithm = "bpe";
  int64_t vocab_size = 8000;
  double character_coverage = 1.0;
  /// Threads of a bpe training; 0 = the cores that this process may use, at most 16. unigram always
  /// uses 8, because its float sums depend on the number.
  int64_t num_threads = 0;
};
std::string train_sentencepiece(const std::vector<std::string>& lines,
                                const SentencePieceTraining& options);

}  // namespace stretto::text
