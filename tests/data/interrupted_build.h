#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace stretto::testing {

/// Does what another tokenizer does, and something more at the n-th line.
class InterruptedTokenizer final : public text::Tokenizer {
 public:
  InterruptedTokenizer(std::shared_ptr<const text::Tokenizer> inner, int64_t line,
                       std::function<void()> action)
      : inner_(std::move(inner)), line_(line), action_(std::move(action)) {}
  text::SpecialIds specials() const override { return inner_->specials(); }
  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    if (++lines_ == line_) action_();
    inner_->encode(line, ids);
  }
  std::string decode(const std::vector<int64_t>& ids) const override { return inner_->decode(ids); }
  std::string piece(int64_t id) const override { return inner_->piece(id); }
  int64_t size() const override { return inner_->size(); }
  uint64_t fingerprint() const override { return inner_->fingerprint(); }

 private:
  std::shared_ptr<const text::Tokenizer> inner_;
  int64_t line_;
  std::function<void()> action_;
  mutable std::atomic<int64_t> lines_{0};
};

/// Runs `body` in a child process, whose exit code is 3 where it throws. @return its wait status
inline int in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (...) {
      ::_exit(3);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace stretto::testing
