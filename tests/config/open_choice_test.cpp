#include "config/open_choice.h"

#include <gtest/gtest.h>

#include "config/describe.h"
#include "config/open_part.h"
#include "config/resolved.h"
#include "tests/config/reading.h"

namespace stretto::config {
namespace {

struct GasHeat {
  static constexpr const char* kName = "gas";
  int64_t burners = 4;

  static auto fields() {
    return Fields{field(&GasHeat::burners, "burners", "flames", at_least(1))};
  }
};

struct CoilHeat {
  static constexpr const char* kName = "coil";
  double watts = 1000;

  static auto fields() { return Fields{field(&CoilHeat::watts, "watts", "power", at_least(0))}; }
};

struct WoodHeat {
  static constexpr const char* kName = "wood";
  int64_t logs = 3;

  static auto fields() { return Fields{field(&WoodHeat::logs, "logs", "pieces")}; }
};

OpenChoice::Alternatives heats() {
  return {open_alternative<GasHeat>(), open_alternative<CoilHeat>()};
}

class OpenHeat : public OpenChoice {
 public:
  OpenHeat() : OpenChoice(&heats) {}
  using OpenChoice::operator=;
};

/// The same stove with a list that its room knows, and with one that others bring.
template <class Heat>
struct StoveOf {
  int64_t height = 90;
  Heat heat;

  static auto fields() {
    return Fields{field(&StoveOf::height, "height", "from the floor"),
                  field(&StoveOf::heat, "heat", "where it comes from")
                      .value_also_called("gas", {"methane"})
                      .with_parts_beside()};
  }
};
using OpenStove = StoveOf<OpenHeat>;
using ClosedStove = StoveOf<Choice<GasHeat, CoilHeat>>;

TEST(OpenChoice, IsItsFirstPartUntilAnotherIsChosen) {
  OpenHeat heat;
  EXPECT_EQ(heat.name(), "gas");
  EXPECT_EQ(heat.names(), (std::vector<std::string>{"gas", "coil"}));
  heat.as<GasHeat>().burners = 7;
  EXPECT_TRUE(heat.select("gas"));
  EXPECT_EQ(heat.as<GasHeat>().burners, 7) << "the same part stays as it is";
  EXPECT_FALSE(heat.select("wood"));
  EXPECT_TRUE(heat.is<GasHeat>());
  EXPECT_TRUE(heat.select("coil"));
  EXPECT_EQ(heat.name(), "coil");
  EXPECT_TRUE(heat.select("gas"));
  EXPECT_EQ(heat.as<GasHeat>().burners, 4) << "another part begins with its defaults";
}

TEST(OpenChoice, RefusesTheOptionsOfAPartThatIsNotChosen) {
  OpenHeat heat;
  EXPECT_THROW(heat.as<CoilHeat>(), std::bad_variant_access);
  EXPECT_THROW(std::as_const(heat).as<CoilHeat>(), std::bad_variant_access);
  EXPECT_THROW(heat = WoodHeat{}, std::bad_variant_access);
  heat = CoilHeat{.watts = 5};
  EXPECT_EQ(heat.name(), "coil");
  EXPECT_EQ(std::as_const(heat).as<CoilHeat>().watts, 5);
}

TEST(OpenChoice, ACopyHasOptionsOfItsOwn) {
  OpenHeat heat;
  heat = GasHeat{.burners = 2};
  OpenHeat copy = heat;
  heat.as<GasHeat>().burners = 9;
  EXPECT_EQ(copy.as<GasHeat>().burners, 2);
  heat.select("coil");
  copy = heat;
  EXPECT_EQ(copy.name(), "coil");
  EXPECT_TRUE(copy.is<CoilHeat>());
  const OpenHeat& itself = copy;
  copy = itself;
  EXPECT_TRUE(copy.is<CoilHeat>());
}

TEST(OpenChoice, KeysStayValidWhenAnotherWithTheSamePartIsTaken) {
  OpenStove stove, other;
  const Schema schema = schema_of(stove);
  other.heat = GasHeat{.burners = 6};
  stove = other;
  EXPECT_EQ(value_text(schema.find("burners")->value), "6");
}

TEST(OpenChoice, IsReadLikeAChoiceOfKnownParts) {
  const auto read = read_text<OpenStove>("watts = 30\n[heat]\nname = \"coil\"\n");
  EXPECT_EQ(read.message(), "");
  EXPECT_EQ(read.options.heat.as<CoilHeat>().watts, 30);
  for (const char* text : {"burners = 0\n", "watts = 3\n", "[heat]\nname = \"wood\"\n",
                           "[heat]\nname = \"methane\"\n", "burner = 2\n"}) {
    EXPECT_EQ(read_text<OpenStove>(text).message(), read_text<ClosedStove>(text).message()) << text;
    EXPECT_NE(read_text<OpenStove>(text).message(), "") << text;
  }
}

TEST(OpenChoice, IsDescribedLikeAChoiceOfKnownParts) {
  OpenStove open;
  ClosedStove closed;
  EXPECT_EQ(to_toml(schema_of(open), nullptr), to_toml(schema_of(closed), nullptr));
  EXPECT_EQ(fixed_hash(schema_of(open), {}), fixed_hash(schema_of(closed), {}));
  EXPECT_EQ(reference_markdown(schema_of(open)), reference_markdown(schema_of(closed)));
}

}  // namespace
}  // namespace stretto::config
