#include "text/ngram/arpa.h"

#include <zlib.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "text/ngram/ngram_model.h"

namespace stretto::text {
namespace {

class ByteLines final : public ArpaLines {
 public:
  explicit ByteLines(std::string_view bytes) : rest_(bytes) {}
  bool next(std::string_view& line) override {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return true;
  }

 private:
  std::string_view rest_;
};

constexpr size_t kMostLineBytes = size_t{1} << 20;

class GzipLines final : public ArpaLines {
 public:
  explicit GzipLines(const std::filesystem::path& path)
      : place_(path.string()), file_(gzopen(path.c_str(), "rb")) {
    if (!file_)
      throw Error(ExitCode::kIo, place_ + ": cannot be opened", "look at its permissions");
    gzbuffer(file_.get(), 1U << 18);
  }

  bool next(std::string_view& line) override {
    for (;;) {
      const size_t end = buffer_.find('\n', scanned_);
      if (end != std::string::npos) {
        line = std::string_view(buffer_).substr(begin_, end - begin_);
        begin_ = scanned_ = end + 1;
        return true;
      }
      scanned_ = buffer_.size();
      if (!fill()) break;
    }
    if (begin_ == buffer_.size()) return false;
    line = std::string_view(buffer_).substr(begin_);
    begin_ = scanned_ = buffer_.size();
    return true;
  }

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };

  /// Reads on behind what was not taken yet.
  bool fill() {
    constexpr size_t kRead = size_t{1} << 18;
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
    const size_t before = buffer_.size();
    if (before > kMostLineBytes)
      throw Error(ExitCode::kBadData,
                  place_ + ": a line of more than a megabyte: this is no ARPA text",
                  "decode.lm takes ARPA text, plain or gzip, or a binary file of KenLM");
    buffer_.resize(before + kRead);
    const int got = gzread(file_.get(), buffer_.data() + before, static_cast<unsigned>(kRead));
    buffer_.resize(before + static_cast<size_t>(got > 0 ? got : 0));
    int problem = Z_OK;
    const char* message = gzerror(file_.get(), &problem);
    if (got < 0 || (got == 0 && problem != Z_OK)) {
      throw Error(ExitCode::kBadData, place_ + ": cannot be decompressed: " + message,
                  "copy the file again, or decompress it with gunzip");
    }
    return got > 0;
  }

  std::string place_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string buffer_;
  size_t begin_ = 0;    ///< of what was not taken yet
  size_t scanned_ = 0;  ///< no line ends before here
};

bool is_blank_char(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank_char(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank_char(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes the next word of a line; empty at its end.
std::string_view take_word(std::string_view& line) {
  line = without_blanks(line);
  size_t length = 0;
  while (length < line.size() && !is_blank_char(line[length])) ++length;
  const std::string_view word = line.substr(0, length);
  line.remove_prefix(length);
  return word;
}

class ArpaReader {
 public:
  ArpaReader(ArpaLines& lines, const std::string& place) : lines_(lines), place_(place) {}

  std::vector<uint64_t> read_counts();
  void read_section(int order, uint64_t count,
                    const std::function<void(const ArpaNgram&)>& on_ngram);
  void read_end();

 private:
  bool next();
  /// The next line that is not empty.
  bool next_full();
  void parse(int order, ArpaNgram& ngram);
  float number(std::string_view text, const char* what) const;
  [[noreturn]] void fail(const std::string& what) const;

  ArpaLines& lines_;
  const std::string& place_;
  std::string_view line_;
  int64_t number_ = 0;
  bool is_taken_ = true;  ///< false: line_ is still to be looked at
  std::array<std::string_view, kMaxNgramOrder> words_;
};

void ArpaReader::fail(const std::string& what) const {
  throw Error(
      ExitCode::kBadData, place_ + ":" + std::to_string(number_) + ": " + what,
      "a language model is ARPA text, as SRILM and KenLM's lmplz write it, or a binary file "
      "of KenLM");
}

bool ArpaReader::next() {
  if (!lines_.next(line_)) return false;
  line_ = without_blanks(line_);
  ++number_;
  return true;
}

bool ArpaReader::next_full() {
  while (next()) {
    if (!line_.empty()) return true;
  }
  return false;
}

std::vector<uint64_t> ArpaReader::read_counts() {
  while (next_full() && line_ != "\\data\\") {
    if (number_ > 1000 || line_.size() > 10000)
      fail("no line \\data\\ so far: this is no ARPA text");
  }
  if (line_ != "\\data\\") fail("no line \\data\\: this is no ARPA text");
  std::vector<uint64_t> counts;
  for (;;) {
    if (!next_full()) fail("the file ends in its counts");
    if (!line_.starts_with("ngram")) break;
    std::string_view rest = line_.substr(5);
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) fail("expected `ngram ORDER=COUNT`");
    const std::string_view order = without_blanks(rest.substr(0, equals));
    const std::string_view count = without_blanks(rest.substr(equals + 1));
    if (order != std::to_string(counts.size() + 1))
      fail("expected the count of order " + std::to_string(counts.size() + 1));
    uint64_t value = 0;
    const auto [end, problem] = std::from_chars(count.data(), count.data() + count.size(), value);
    if (problem != std::errc() || end != count.data() + count.size() || value > 0xFFFFFFF0U)
      fail("the count " + printable(count, 40) + " is none, or too large");
    counts.push_back(value);
    if (counts.size() > static_cast<size_t>(kMaxNgramOrder))
      fail("n-grams of more than " + std::to_string(kMaxNgramOrder) + " words cannot be read");
  }
  if (counts.empty() || counts[0] == 0) fail("the model has no words");
  is_taken_ = false;
  return counts;
}

float ArpaReader::number(std::string_view text, const char* what) const {
  double value = 0;
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const auto rounded = static_cast<float>(value);
  if (problem != std::errc() || end != digits.data() + digits.size() || !std::isfinite(rounded))
    fail(std::string("the ") + what + " " + printable(text, 40) + " is no number");
  return rounded;
}

void ArpaReader::parse(int order, ArpaNgram& ngram) {
  std::string_view rest = line_;
  ngram.log_prob = number(take_word(rest), "probability");
  if (ngram.log_prob > 0)
    fail("the probability is above 1: its logarithm is " + shortest(double{ngram.log_prob}));
  const auto num_words = static_cast<size_t>(order);
  for (size_t i = 0; i < num_words; ++i) {
    words_[i] = take_word(rest);
    if (words_[i].empty())
      fail("expected " + counted(order, "word") + ", found " + std::to_string(i));
    if (std::memchr(words_[i].data(), '\0', words_[i].size()) != nullptr)
      fail("a word has a byte 0");
  }
  ngram.words = std::span<const std::string_view>(words_.data(), num_words);
  const std::string_view backoff = take_word(rest);
  ngram.backoff = backoff.empty() ? 0.0F : number(backoff, "back-off");
  if (!take_word(rest).empty())
    fail("more than " + counted(order, "word") + " and a back-off in a line");
  ngram.line = number_;
}

void ArpaReader::read_section(int order, uint64_t count,
                              const std::function<void(const ArpaNgram&)>& on_ngram) {
  const std::string title = "\\" + std::to_string(order) + "-grams:";
  if (is_taken_ && !next_full()) fail("the file ends before " + title);
  is_taken_ = true;
  if (line_ != title) fail("expected " + title + ", found " + printable(line_, 60));
  ArpaNgram ngram;
  uint64_t found = 0;
  while (next_full()) {
    // A word may begin with a backslash, but a probability does not.
    if (line_.front() == '\\') {
      is_taken_ = false;
      break;
    }
    if (++found > count)
      fail("more " + std::to_string(order) + "-grams than the " + std::to_string(count) +
           " that \\data\\ promises");
    parse(order, ngram);
    on_ngram(ngram);
  }
  if (found < count)
    fail(std::to_string(found) + " " + std::to_string(order) + "-grams, and \\data\\ promises " +
         std::to_string(count));
}

void ArpaReader::read_end() {
  if (is_taken_ && !next_full()) fail("the file ends without \\end\\");
  if (line_ != "\\end\\") fail("expected \\end\\, found " + printable(line_, 60));
}

}  // namespace

std::unique_ptr<ArpaLines> arpa_lines(std::string_view bytes) {
  return std::make_unique<ByteLines>(bytes);
}

std::unique_ptr<ArpaLines> arpa_file_lines(const std::filesystem::path& path) {
  return std::make_unique<GzipLines>(path);
}

void read_arpa(ArpaLines& lines, const std::string& place,
               const std::function<void(const std::vector<uint64_t>&)>& on_counts,
               const std::function<void(const ArpaNgram&)>& on_ngram) {
  ArpaReader reader(lines, place);
  const std::vector<uint64_t> counts = reader.read_counts();
  on_counts(counts);
  for (size_t i = 0; i < counts.size(); ++i)
    reader.read_section(static_cast<int>(i) + 1, counts[i], on_ngram);
  reader.read_end();
}

}  // namespace stretto::text
