#include "examples/reviews/opinions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "base/random.h"
#include "base/text.h"

namespace stretto::reviews {
namespace {

constexpr std::array<std::string_view, 24> kThings{
    "soup",  "service", "room",   "view",    "waiter", "bread", "music",   "price",
    "bed",   "garden",  "coffee", "staff",   "fish",   "wine",  "terrace", "breakfast",
    "salad", "lamp",    "shower", "dessert", "door",   "cake",  "table",   "guide"};
constexpr std::array<std::string_view, 12> kPraise{"good",      "lovely",   "excellent", "pleasant",
                                                   "perfect",   "charming", "splendid",  "amazing",
                                                   "delicious", "superb",   "fabulous",  "great"};
constexpr std::array<std::string_view, 12> kBlame{"bad",      "awful",    "terrible",  "poor",
                                                  "dreadful", "horrible", "boring",    "dismal",
                                                  "shabby",   "nasty",    "miserable", "tedious"};
constexpr std::array<std::string_view, 6> kHow{"", "really ", "quite ", "very ", "rather ", "so "};
constexpr std::array<std::string_view, 6> kOpenings{
    "", "", "I must say that ", "Everybody agrees: ", "Last week ", "This time "};
constexpr std::array<std::string_view, 4> kWereNot{"was not", "was never", "is not", "was hardly"};
constexpr std::array<std::string_view, 3> kWere{"was", "is", "seemed"};

constexpr double kWorst = 1, kBest = 5;

/// What a review says of one thing.
struct Opinion {
  std::string thing;
  std::string clause;
  bool is_good = true;
};

template <size_t N>
std::string draw_one(RandomStream& random, const std::array<std::string_view, N>& words) {
  return std::string(words[random.below(N)]);
}

Opinion draw_opinion(RandomStream& random, const std::vector<Opinion>& before) {
  Opinion opinion;
  const auto is_known = [&](const std::string& thing) {
    return std::any_of(before.begin(), before.end(),
                       [&](const Opinion& other) { return other.thing == thing; });
  };
  do opinion.thing = draw_one(random, kThings);
  while (is_known(opinion.thing));
  const bool praises = random.below(2) == 0, turns_round = random.below(3) == 0;
  opinion.is_good = praises != turns_round;
  const std::string verb = turns_round ? draw_one(random, kWereNot) : draw_one(random, kWere);
  const std::string how = draw_one(random, kHow);
  opinion.clause = "the " + opinion.thing + " " + verb + " " + how +
                   (praises ? draw_one(random, kPraise) : draw_one(random, kBlame));
  return opinion;
}

std::string joined(const std::vector<Opinion>& opinions) {
  std::string text = opinions.front().clause;
  for (size_t i = 1; i < opinions.size(); ++i) {
    text += (opinions[i].is_good == opinions[i - 1].is_good ? " and " : ", but ");
    text += opinions[i].clause;
  }
  return text;
}

const char* word_of(bool is_good) {
  return is_good ? "good" : "bad";
}

Review draw_review(RandomStream& random) {
  std::vector<Opinion> opinions;
  const size_t count = 1 + random.below(3);
  while (opinions.size() < count) opinions.push_back(draw_opinion(random, opinions));
  Review review;
  review.text = draw_one(random, kOpenings) + joined(opinions) + ".";
  review.text.front() = static_cast<char>(
      review.text.front() >= 'a' ? review.text.front() - 'a' + 'A' : review.text.front());
  const auto good = static_cast<size_t>(
      std::count_if(opinions.begin(), opinions.end(), [](const auto& o) { return o.is_good; }));
  review.label = good == count ? "good" : good == 0 ? "bad" : "mixed";
  review.stars = kWorst + (kBest - kWorst) * static_cast<double>(good) / static_cast<double>(count);
  const Opinion& asked = opinions[random.below(count)];
  review.about = asked.thing;
  review.verdict = word_of(asked.is_good);
  return review;
}

std::vector<Review> draw_part(uint64_t seed, uint64_t number, size_t size,
                              std::unordered_set<std::string>& seen) {
  RandomStream random(mix64(seed, number));
  std::vector<Review> reviews;
  while (reviews.size() < size) {
    Review review = draw_review(random);
    if (seen.insert(review.text).second) reviews.push_back(std::move(review));
  }
  return reviews;
}

}  // namespace

Corpus generate(uint64_t seed, const CorpusSizes& sizes) {
  std::unordered_set<std::string> seen;
  Corpus corpus;
  corpus.valid = draw_part(seed, 1, sizes.valid, seen);
  corpus.test = draw_part(seed, 2, sizes.test, seen);
  corpus.train = draw_part(seed, 0, sizes.train, seen);
  return corpus;
}

std::string tsv(const std::vector<Review>& reviews) {
  std::string text = "text\tlabel\tstars\tabout\tverdict\n";
  for (const Review& review : reviews) {
    text += review.text + "\t" + review.label + "\t" + fixed(review.stars, 2) + "\t" +
            review.about + "\t" + review.verdict + "\n";
  }
  return text;
}

}  // namespace stretto::reviews
