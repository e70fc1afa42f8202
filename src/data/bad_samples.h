#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/field.h"

/// Samples that cannot be read, or not be used: a row with too few fields, a line with a NUL byte.
/// `data.bad_samples` says what becomes of them, for all readers alike. A sample is left out by
/// what its file has in this place alone, so that all processes, `check`, training and `eval` leave
/// out the same ones.
namespace stretto::data {

/// So many are named: of a file that is refused, and of those that were left out.
inline constexpr size_t kNamedBadSamples = 10;

/// `data.bad_samples` and `data.max_bad_samples`.
struct BadSampleRule {
  bool skips = false;  ///< else they are errors
  int64_t most = 1000;
};

/// @tparam Options  with both keys
template <class Options>
BadSampleRule bad_sample_rule(const Options& options) {
  return {.skips = options.bad_samples == "skip", .most = options.max_bad_samples};
}

/// The declaration of both keys.
template <class Options>
auto bad_sample_fields() {
  using namespace config;
  return Fields{
      field(&Options::bad_samples, "bad_samples",
            "what becomes of a sample that cannot be read or used, such as a row with too few "
            "fields. stop: an error, which names up to ten of the file. skip: it is left out and "
            "counted, and the first ten are named",
            one_of({"stop", "skip"}), {.change = Change::kReading})
          .also_called({"on_bad_lines", "bad_lines", "bad_rows", "invalid_samples"})
          .value_also_called("stop", {"error", "raise", "refuse", "fail"})
          .value_also_called("skip", {"drop", "ignore", "warn", "remove"}),
      field(&Options::max_bad_samples, "max_bad_samples",
            "with bad_samples = \"skip\": more of them in the training, validation or test data "
            "are an error",
            at_least(0), {.unit = "samples", .change = Change::kFree})
          .also_called({"max_bad_lines", "max_bad_rows"}),
  };
}

/// A fault of one sample. The reader that throws it stands behind that sample, and can go on.
class SampleError : public Error {
 public:
  /// @param fault  with its place in the file: ":17: an empty text"
  SampleError(std::string file, std::string fault, const std::string& advice);
  /// Another error of that file as a fault of one sample.
  static SampleError of(const Error& error, const std::string& file);

  const std::string& file() const { return file_; }
  const std::string& fault() const { return fault_; }

 private:
  std::string file_, fault_;
};

/// A sample that was left out.
struct BadSample {
  std::string file;
  std::string fault;  ///< ":17: an empty text"

  bool operator==(const BadSample&) const = default;
};

/// Samples that were left out: how many, and the first of them.
struct LeftOut {
  int64_t count = 0;
  std::vector<BadSample> first;

  /// "2 bad samples: a.tsv:17: an empty text; 20: no label"; empty without any.
  std::string text() const;
};

/// Collects the bad samples of some files, one file after the other, and applies the rule.
class BadSamples {
 public:
  explicit BadSamples(BadSampleRule rule = {}) : rule_(rule) {}

  /// With "skip", counts it; throws Error(kBadData) where it is one too many. With "stop", keeps
  /// it, so that the reader can look for more; throws all of its file once there are ten. That
  /// error has the first whole and the others in brief; its details() are all of them.
  void add(const SampleError& error);
  /// At the end of each file, or where reading ends: throws what "stop" has kept.
  void end_file();

  bool skips() const { return rule_.skips; }
  /// Whether end_file() will throw: reading on serves to find more faults only.
  bool is_stopping() const { return !faults_.empty(); }
  const LeftOut& left_out() const { return left_out_; }

 private:
  [[noreturn]] void throw_faults();

  BadSampleRule rule_;
  LeftOut left_out_;
  std::vector<SampleError> faults_;  ///< of this file, with "stop"
};

/// Throws Error(kBadData) where more were left out than the rule allows: a cache may have been made
/// under another one.
void require_within(const BadSampleRule& rule, const LeftOut& left_out);

/// For the head of a cache, which does not know where its files lie: each sample's file is a place
/// in `files`.
void append_left_out(std::vector<uint64_t>& words, const LeftOut& left_out,
                     std::span<const std::string> files);
/// Reads it at `at`, and moves on; its files are named as `files` names them.
/// @return false where there is none
bool take_left_out(std::span<const uint64_t> words, size_t& at, std::span<const std::string> files,
                   LeftOut& left_out);

}  // namespace stretto::data
