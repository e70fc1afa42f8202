#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text.h"

namespace stretto::testing {

/// A random n-gram model, and its scores by the definition. Word 0 is `<s>`, word 1 `</s>`. Numbers
/// are multiples of 1/64, so that they are exact in every form.
struct RandomNgrams {
  using Words = std::vector<int>;

  int num_words = 0;
  /// Of each order: n-grams as they were drawn.
  std::vector<std::vector<Words>> of_order;
  std::map<Words, std::pair<float, float>> numbers;  ///< prob, back-off

  static std::string name(int word) {
    return word == 0 ? "<s>" : word == 1 ? "</s>" : "w" + std::to_string(word);
  }

  /// @param left_out  share of endings that are missing, as after pruning
  RandomNgrams(uint64_t seed, int words, int order, double left_out) : num_words(words) {
    RandomStream random(mix64(seed, 11));
    of_order.resize(static_cast<size_t>(order));
    const auto below = [&](int number) {
      return static_cast<int>(random.below(static_cast<uint64_t>(number)));
    };
    const auto add = [&](const Words& ngram) {
      const bool is_longest = static_cast<int>(ngram.size()) == order;
      const float backoff =
          is_longest || below(5) == 0 ? 0.0F : static_cast<float>(below(64) - 44) / 64;
      numbers[ngram] = {-static_cast<float>(1 + below(190)) / 64, backoff};
      of_order[ngram.size() - 1].push_back(ngram);
    };
    for (int word = 0; word < words; ++word) add({word});
    for (size_t n = 1; n < of_order.size(); ++n) {
      for (const Words& context : of_order[n - 1]) {
        if (context.back() == 1) continue;
        for (int word = 1; word < words; ++word) {
          Words ngram = context;
          ngram.push_back(word);
          const bool has_ending = numbers.contains(Words(ngram.begin() + 1, ngram.end()));
          if (random.uniform() < 0.3 && (has_ending || random.uniform() < left_out)) add(ngram);
        }
      }
    }
  }

  std::string arpa() const {
    std::string text = "\\data\\\n";
    for (size_t n = 0; n < of_order.size(); ++n)
      text += "ngram " + std::to_string(n + 1) + "=" + std::to_string(of_order[n].size()) + "\n";
    for (size_t n = 0; n < of_order.size(); ++n) {
      text += "\n\\" + std::to_string(n + 1) + "-grams:\n";
      for (const Words& ngram : of_order[n]) {
        std::vector<std::string> names;
        for (const int word : ngram) names.push_back(name(word));
        const auto& [prob, backoff] = numbers.at(ngram);
        text += fixed(double{prob}, 6) + "\t" + join(names, " ");
        text += (backoff == 0 ? "" : "\t" + fixed(double{backoff}, 6)) + "\n";
      }
    }
    return text + "\n\\end\\\n";
  }

  /// log10 p(last word | the others)
  double score(Words words) const {
    double backoffs = 0;
    for (;;) {
      if (const auto found = numbers.find(words); found != numbers.end())
        return backoffs + double{found->second.first};
      if (const auto found = numbers.find(Words(words.begin(), words.end() - 1));
          found != numbers.end()) {
        backoffs += double{found->second.second};
      }
      words.erase(words.begin());
    }
  }
};

}  // namespace stretto::testing
