#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// How a task's own numbers and samples are printed and drawn. A family of tasks brings the table;
/// this room knows the loss, the rate and the gradient, and gives whatever has no row a default.
namespace stretto::report {

enum class Axis : uint8_t { kLinear, kFromZero, kLogarithmic };

/// How the numbers of one name are shown.
struct NumberStyle {
  std::string name;               ///< their key in metrics.jsonl: "ppl"
  std::string label = name;       ///< on the console and in legends: "WER"
  std::string remark = {};        ///< on the console behind the value: "exp of nll"
  int decimals = 4;               ///< on the console
  std::string progress = {};      ///< label on the line of progress; empty = not there
  std::string chart = {};         ///< title; numbers of one title share a chart; empty = not drawn
  Axis axis = Axis::kLinear;      ///< of that chart
  std::string tile = {};          ///< title among the key numbers; empty = not there
  std::string column = {};        ///< heading in the table of validations; empty = not there
  int column_decimals = 4;        ///< in that table
  bool higher_is_better = false;  ///< which of two is called the best
  bool of_validation = false;     ///< training has none of it
  std::string exponential_of = {};  ///< an event without it has exp of this number
  std::string error = {};  ///< name of 1 - the number, of a share of right answers; empty = none
};

/// What throughput counts, and the size of a batch with it.
struct RateStyle {
  std::string key = "samples_per_second";  ///< in metrics.jsonl
  std::string unit = "samples";            ///< "tokens": titles are made of it
  std::string short_unit = "samples";      ///< on the line of progress: "tok" of "tok/s"
  std::string remark = {};                 ///< under the key number: "without padding"
  std::string batch = {};                  ///< key of the count that is the size of an update

  std::string title() const;        ///< "Tokens per second"
  std::string short_title() const;  ///< "Tokens/s"
};

/// What the loss is divided by: the gradient noise scale is in it, and a batch beside that.
struct LossUnit {
  std::string name = "samples";  ///< "frames": titles are made of it
  std::string count = {};        ///< key of how many an update has; empty = no event tells
};

/// The headings of a TextPairSample and of a MarkedTextSample (report/sample.h).
struct TextPairWords {
  std::string input = "Input", output = "Output", reference = "Reference";
  std::string picture = "attention, output by input";
  std::string request = "Request";  ///< of a MarkedTextSample
};

struct Display {
  std::vector<NumberStyle> numbers = {};  ///< in the order in which they are shown
  RateStyle rate = {};
  LossUnit loss_unit = {};
  std::string note = {};            ///< a remark under the key numbers; empty = none
  std::string best_by = "loss";     ///< the number that `best` means: marks a row of validations
  std::string samples = "Samples";  ///< their heading
  TextPairWords text_pair = {};

  /// The row of a name, and where there is none what any number gets: a chart and a column of its
  /// own under its name.
  NumberStyle style(const std::string& name) const;
  /// Whether a name has a row; the loss always has one.
  bool knows(const std::string& name) const;
};

/// `numbers` with the loss in front, if it has no row, and behind them rows for the `others` that
/// have none.
std::vector<NumberStyle> styles_of(const Display& display, const std::vector<std::string>& others);

/// The loss of a task that says nothing of it.
NumberStyle loss_style();

}  // namespace stretto::report
