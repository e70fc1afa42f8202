// With which values of other keys a key counts: declared once, and told everywhere.
#include <gtest/gtest.h>

#include "config/choice.h"
#include "config/describe.h"
#include "tests/config/is_read.h"

namespace stretto::config {
namespace {

using stretto::testing::is_read;

struct Candle {
  static constexpr const char* kName = "candle";
  int64_t wicks = 1;
  static auto fields() { return Fields{field(&Candle::wicks, "wicks", "how many")}; }
};

struct Bulb {
  static constexpr const char* kName = "bulb";
  bool dimmed = false;
  int64_t steps = 3;
  double colour = 0;
  double warmth = 0.5;
  double glow = 0.5;
  int64_t shade = 1;

  static auto fields() {
    using O = Bulb;
    return Fields{
        field(&O::dimmed, "dimmed", "whether it is"),
        field(&O::steps, "steps", "of dimming").read_with("dimmed", {"true"}),
        field(&O::colour, "colour", "how much of it", at_least(0)),
        field(&O::warmth, "warmth", "of the colour", any(), {.change = Change::kFree})
            .read_unless_zero("colour"),
        field(&O::glow, "glow", "of the warmth").read_unless_zero("warmth"),
        field(&O::shade, "shade", "its number")
            .read_with_key("gallery.floor", {"wood", "cork", "clay"}),
    };
  }
};

struct Gallery {
  Choice<Candle, Bulb> light;
  std::string floor = "stone";
  std::string polish = "none";

  static auto fields() {
    using O = Gallery;
    return Fields{
        field(&O::light, "light", "what lights it"),
        field(&O::floor, "floor", "what lies there", one_of({"stone", "wood", "cork", "clay"})),
        field(&O::polish, "polish", "of the floor")
            .read_with("floor", {"stone", "wood"})
            .read_unless_zero("light.warmth"),
    };
  }
};

struct Palace {
  Gallery gallery;
  std::vector<Gallery> galleries = {};
  static auto fields() {
    return Fields{field(&Palace::gallery, "gallery", "the gallery"),
                  field(&Palace::galleries, "galleries", "others")};
  }
};

Schema palace_of_bulbs() {
  static Palace palace;
  palace.gallery.light = Bulb{};
  palace.galleries = {Gallery{}};
  palace.galleries[0].light = Bulb{};
  return schema_of(palace);
}

TEST(Readers, AreNamedByTheirPathsWhereverTheSectionStands) {
  const Schema schema = palace_of_bulbs();
  const auto text = [&](const char* key) { return readers_text(*schema.find(key), schema); };
  EXPECT_EQ(text("gallery.light.dimmed"), "");
  EXPECT_EQ(text("gallery.light.steps"), "gallery.light.dimmed = true");
  EXPECT_EQ(text("gallery.light.warmth"), "gallery.light.colour above 0");
  EXPECT_EQ(text("gallery.light.shade"), "gallery.floor = any but stone");
  EXPECT_EQ(text("gallery.polish"),
            "gallery.floor = stone or wood, or with gallery.light.warmth above 0");
  EXPECT_EQ(text("galleries.0.light.steps"), "galleries.0.light.dimmed = true");
  EXPECT_EQ(text("galleries.0.light.shade"), "gallery.floor = any but stone") << "from the root";
}

TEST(Readers, OfANumberReadUnlessItIsZero) {
  Palace palace;
  palace.gallery.light = Bulb{};
  const auto chosen = [&](double colour) {
    palace.gallery.light.as<Bulb>().colour = colour;
    return chosen_value(*schema_of(palace).find("gallery.light.colour"));
  };
  const ReadWith reader{.deciding_key = "gallery.light.colour", .values = {}};
  EXPECT_EQ(chosen(0), "0");
  EXPECT_EQ(chosen(-0.0), "0");
  EXPECT_EQ(chosen(0.5), "0.5");
  EXPECT_FALSE(reads_with(reader, "0"));
  EXPECT_TRUE(reads_with(reader, "0.5"));
  EXPECT_EQ(chosen_value(*schema_of(palace).find("gallery.light.steps")), "3");
  EXPECT_EQ(chosen_value(*schema_of(palace).find("gallery.light.dimmed")), "false");
  EXPECT_EQ(chosen_value(*schema_of(palace).find("gallery.floor")), "stone");
}

TEST(Readers, ReadAKeyOnlyWhereSomethingReadsItsDecidingKey) {
  EXPECT_FALSE(is_read("steps", Bulb{}));
  EXPECT_TRUE(is_read("steps", Bulb{.dimmed = true}));
  EXPECT_FALSE(is_read("glow", Bulb{})) << "of a warmth that nothing reads";
  EXPECT_TRUE(is_read("glow", Bulb{.colour = 1}));
  EXPECT_FALSE(is_read("glow", Bulb{.colour = 1, .warmth = 0}));
}

TEST(Readers, AreToldByDescribeAndByTheReference) {
  const Schema schema = palace_of_bulbs();
  EXPECT_EQ(describe(schema, "gallery.light.warmth"),
            "  gallery.light.warmth = 0.5\n      of the colour\n"
            "      number; may change when a run goes on\n"
            "      counts with gallery.light.colour above 0\n");
  EXPECT_EQ(describe(schema, "gallery.light.dimmed").find("counts"), std::string::npos);
  const std::string page = reference_markdown(schema);
  for (const char* row :
       {"| of the colour *(with gallery.light.colour above 0)* *(free)* |\n",
        "| of dimming *(with gallery.light.dimmed = true)* |\n",
        "| of dimming *(with galleries.light.dimmed = true)* |\n",
        "| its number *(with gallery.floor = wood, cork or clay)* |\n", "| whether it is |\n"}) {
    EXPECT_NE(page.find(row), std::string::npos) << row << "\n" << page;
  }
}

}  // namespace
}  // namespace stretto::config
