// Keys of parts that somebody put under another section than the one that has them.
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/choice.h"
#include "config/load.h"

namespace stretto::config {
namespace {

struct Sail {
  static constexpr const char* kName = "sail";
  int64_t masts = 2;
  static auto fields() { return Fields{field(&Sail::masts, "masts", "how many")}; }
};

struct Steam {
  static constexpr const char* kName = "steam";
  int64_t boilers = 1;
  bool whistle = false;
  static auto fields() {
    return Fields{field(&Steam::boilers, "boilers", "how many"),
                  field(&Steam::whistle, "whistle", "whether it is heard")};
  }
};

struct Motor {
  static constexpr const char* kName = "motor";
  bool whistle = false;
  static auto fields() { return Fields{field(&Motor::whistle, "whistle", "whether it is heard")}; }
};

struct Kite {
  static constexpr const char* kName = "kite";
  int64_t lines = 4;
  bool whistle = false;
  static auto fields() {
    return Fields{field(&Kite::lines, "lines", "how many"),
                  field(&Kite::whistle, "whistle", "whether it is heard")};
  }
};

struct Oars {
  static constexpr const char* kName = "oars";
  int64_t rowers = 8;
  static auto fields() { return Fields{field(&Oars::rowers, "rowers", "who row")}; }
};

struct Boat {
  Choice<Sail, Oars> stern;
  static auto fields() { return Fields{field(&Boat::stern, "stern", "what drives it")}; }
};

struct Ship {
  Choice<Sail, Steam, Motor, Kite> bow;
  Choice<Sail, Oars> stern;
  std::vector<Boat> boats = {};
  static auto fields() {
    return Fields{field(&Ship::bow, "bow", "what draws it"),
                  field(&Ship::stern, "stern", "what drives it"),
                  field(&Ship::boats, "boats", "small ones")};
  }
};

struct Harbour {
  Ship ship;
  static auto fields() { return Fields{field(&Harbour::ship, "ship", "the ship")}; }
};

std::string message(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Harbour harbour, fallback;
  std::vector<Problem> problems;
  load_text(text, "a.toml", "/base", overrides, schema_of(harbour), schema_of(fallback), problems);
  try {
    throw_problems(problems);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(KeysElsewhere, AreNamedWithTheSectionWhosePartHasThem) {
  EXPECT_EQ(message("[ship.stern]\nboilers = 3\n"),
            "a.toml:2:1: `ship.stern.boilers`: `boilers` is a key of steam in [ship.bow], and "
            "ship.bow.name is sail\n"
            "  leave it out; `stretto describe ship.bow.steam` lists the keys of steam");
  EXPECT_EQ(message("", {"ship.stern.boilers=3"}),
            "command line, `ship.stern.boilers=3`: `ship.stern.boilers`: `boilers` is a key of "
            "steam in [ship.bow], and ship.bow.name is sail\n"
            "  leave it out; `stretto describe ship.bow.steam` lists the keys of steam");
}

TEST(KeysElsewhere, OfTheChosenPartAreTheOnesThatWereMeant) {
  EXPECT_EQ(message("[ship.bow]\nname = \"steam\"\n[ship.stern]\nboilers = 3\n"),
            "a.toml:4:1: `ship.stern.boilers`: `boilers` is a key of steam in [ship.bow]\n"
            "  did you mean `ship.bow.boilers`? (integer, default 1)");
}

TEST(KeysElsewhere, OfSeveralPartsNameAllOfThem) {
  EXPECT_EQ(message("[ship.stern]\nwhistle = true\n"),
            "a.toml:2:1: `ship.stern.whistle`: `whistle` is a key of steam, motor and kite in "
            "[ship.bow], and ship.bow.name is sail\n"
            "  leave it out; `stretto describe ship.bow.steam` lists the keys of steam");
}

TEST(KeysElsewhere, OfSeveralPartsOfTheirOwnSectionNameAllOfThem) {
  EXPECT_EQ(message("[ship.bow]\nwhistle = true\n")
                .find("a.toml:2:1: `ship.bow.whistle` is a key of steam, motor and kite, and "
                      "ship.bow.name is sail\n"),
            0u)
      << message("[ship.bow]\nwhistle = true\n");
  EXPECT_NE(message("[ship.bow]\nname = \"steam\"\nmasts = 3\n")
                .find("`ship.bow.masts` is a key of sail, and ship.bow.name is steam\n"),
            std::string::npos);
}

TEST(KeysElsewhere, AreFoundForSectionsOfEntriesToo) {
  const std::string what =
      "`ship.boats.1.stern.boilers`: `boilers` is a key of steam in [ship.bow], and ship.bow.name "
      "is sail\n";
  const std::string boats = "[[ship.boats]]\n[[ship.boats]]\n[ship.boats.stern]\n";
  EXPECT_EQ(message(boats + "boilers = 3\n").find("a.toml:4:1: " + what), 0u)
      << message(boats + "boilers = 3\n");
  EXPECT_NE(message(boats, {"ship.boats.1.stern.boilers=3"}).find(what), std::string::npos);
}

TEST(KeysElsewhere, InSectionsOfEntriesAreToldOnceForAllEntries) {
  EXPECT_EQ(message("[[ship.boats]]\n[[ship.boats]]\n[ship.bow]\nrowers = 3\n"),
            "a.toml:4:1: `ship.bow.rowers`: `rowers` is a key of oars in [ship.stern], and of oars "
            "in [ship.boats.stern], and ship.stern.name is sail\n"
            "  leave it out; `stretto describe ship.stern.oars` lists the keys of oars");
  // Where two sections could be meant, the one whose part has the key at present was.
  EXPECT_NE(message("[[ship.boats]]\n[ship.boats.stern]\nname = \"oars\"\n[ship.bow]\nrowers = 3\n")
                .find("\n  did you mean `ship.boats.0.stern.rowers`?"),
            std::string::npos);
}

TEST(KeysElsewhere, ThatTheSectionsOwnPartsHaveAreTheirs) {
  EXPECT_EQ(message("[ship.stern]\nrowers = 3\n")
                .find("a.toml:2:1: `ship.stern.rowers` is a key "
                      "of oars, and ship.stern.name is sail\n"),
            0u);
  EXPECT_EQ(message("[ship.stern]\nzebra = 3\n").find("a.toml:2:1: unknown key `ship.stern.zebra`"),
            0u);
}

TEST(KeysElsewhere, OneLevelTooHighAreNamedWithTheSectionBelow) {
  EXPECT_EQ(message("[ship]\nboilers = 3\n"),
            "a.toml:2:1: `ship.boilers`: `boilers` is a key of steam in [ship.bow], and "
            "ship.bow.name is sail\n"
            "  leave it out; `stretto describe ship.bow.steam` lists the keys of steam");
  EXPECT_EQ(message("", {"ship.rowers=3"}),
            "command line, `ship.rowers=3`: `ship.rowers`: `rowers` is a key of oars in "
            "[ship.stern], and ship.stern.name is sail\n"
            "  leave it out; `stretto describe ship.stern.oars` lists the keys of oars");
  EXPECT_EQ(message("[[ship.boats]]\nrowers = 3\n"),
            "a.toml:2:1: `ship.boats.0.rowers`: `rowers` is a key of oars in [ship.boats.stern], "
            "and ship.boats.0.stern.name is sail\n"
            "  leave it out; `stretto describe ship.boats.stern.oars` lists the keys of oars");
}

TEST(KeysElsewhere, OneLevelTooHighThatTheSectionsBelowHaveWereMeant) {
  EXPECT_EQ(message("[ship]\nboilers = 3\n[ship.bow]\nname = \"steam\"\n"),
            "a.toml:2:1: `ship.boilers`: `boilers` is a key of steam in [ship.bow]\n"
            "  did you mean `ship.bow.boilers`? (integer, default 1)");
  EXPECT_EQ(message("[ship]\nmasts = 3\n"),
            "a.toml:2:1: `ship.masts`: `masts` is a key of sail in [ship.bow], and of sail in "
            "[ship.stern]\n"
            "  did you mean `ship.bow.masts` or `ship.stern.masts`? (integer, default 2)");
}

TEST(KeysElsewhere, OfSectionsThatAreNotBelowAreUnknownThere) {
  EXPECT_EQ(message("[ship]\nzebra = 3\n").find("a.toml:2:1: unknown key `ship.zebra`"), 0u);
  const std::string boat = message("[[ship.boats]]\nboilers = 3\n");
  EXPECT_EQ(boat.find("a.toml:2:1: unknown key `ship.boats.0.boilers`"), 0u) << boat;
}

TEST(KeysElsewhere, SayNothingOfANameThatThereIsNot) {
  const std::string text = message("[ship]\nboilers = 3\n[ship.bow]\nname = \"zebra\"\n");
  EXPECT_EQ(text.find("a.toml:2:1: `ship.boilers`: `boilers` is a key of steam in [ship.bow]\n"
                      "  leave it out; "),
            0u)
      << text;
}

}  // namespace
}  // namespace stretto::config
