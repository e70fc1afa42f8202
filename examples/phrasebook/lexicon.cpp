#include "examples/phrasebook/lexicon.h"

#include <vector>

namespace stretto::phrasebook {
namespace {

constexpr Gender M = Gender::kMasculine;
constexpr Gender F = Gender::kFeminine;

constexpr auto kNouns = std::to_array<Noun>({
    {"man", "men", "homme", "hommes", M, kPerson},
    {"woman", "women", "femme", "femmes", F, kPerson},
    {"boy", "boys", "garçon", "garçons", M, kPerson},
    {"girl", "girls", "fille", "filles", F, kPerson},
    {"child", "children", "enfant", "enfants", M, kPerson},
    {"brother", "brothers", "frère", "frères", M, kPerson},
    {"sister", "sisters", "sœur", "sœurs", F, kPerson},
    {"mother", "mothers", "mère", "mères", F, kPerson},
    {"father", "fathers", "père", "pères", M, kPerson},
    {"uncle", "uncles", "oncle", "oncles", M, kPerson},
    {"aunt", "aunts", "tante", "tantes", F, kPerson},
    {"friend", "friends", "ami", "amis", M, kPerson},
    {"neighbour", "neighbours", "voisin", "voisins", M, kPerson},
    {"teacher", "teachers", "professeur", "professeurs", M, kPerson},
    {"pupil", "pupils", "élève", "élèves", M, kPerson},
    {"student", "students", "étudiant", "étudiants", M, kPerson},
    {"doctor", "doctors", "médecin", "médecins", M, kPerson},
    {"nurse", "nurses", "infirmière", "infirmières", F, kPerson},
    {"baker", "bakers", "boulanger", "boulangers", M, kPerson},
    {"cook", "cooks", "cuisinier", "cuisiniers", M, kPerson},
    {"waitress", "waitresses", "serveuse", "serveuses", F, kPerson},
    {"actress", "actresses", "actrice", "actrices", F, kPerson},
    {"singer", "singers", "chanteuse", "chanteuses", F, kPerson},
    {"queen", "queens", "reine", "reines", F, kPerson},
    {"king", "kings", "roi", "rois", M, kPerson},
    {"farmer", "farmers", "fermier", "fermiers", M, kPerson},
    {"worker", "workers", "ouvrier", "ouvriers", M, kPerson},
    {"lawyer", "lawyers", "avocat", "avocats", M, kPerson},
    {"tourist", "tourists", "touriste", "touristes", M, kPerson},
    {"driver", "drivers", "chauffeur", "chauffeurs", M, kPerson},
    {"cat", "cats", "chat", "chats", M, kAnimal},
    {"dog", "dogs", "chien", "chiens", M, kAnimal},
    {"horse", "horses", "cheval", "chevaux", M, kAnimal},
    {"bird", "birds", "oiseau", "oiseaux", M, kAnimal},
    {"cow", "cows", "vache", "vaches", F, kAnimal},
    {"fox", "foxes", "renard", "renards", M, kAnimal},
    {"apple", "apples", "pomme", "pommes", F, kFood},
    {"orange", "oranges", "orange", "oranges", F, kFood},
    {"egg", "eggs", "œuf", "œufs", M, kFood},
    {"cake", "cakes", "gâteau", "gâteaux", M, kFood},
    {"potato", "potatoes", "pomme de terre", "pommes de terre", F, kFood},
    {"bean", "beans", "haricot", "haricots", M, kFood},
    {"tomato", "tomatoes", "tomate", "tomates", F, kFood},
    {"pear", "pears", "poire", "poires", F, kFood},
    {"bread", "breads", "pain", "pains", M, kFood, true},
    {"cheese", "cheeses", "fromage", "fromages", M, kFood, true},
    {"soup", "soups", "soupe", "soupes", F, kFood, true},
    {"meat", "meats", "viande", "viandes", F, kFood, true},
    {"rice", "rices", "riz", "riz", M, kFood, true},
    {"water", "waters", "eau", "eaux", F, kDrink, true},
    {"milk", "milks", "lait", "laits", M, kDrink, true},
    {"tea", "teas", "thé", "thés", M, kDrink, true},
    {"wine", "wines", "vin", "vins", M, kDrink, true},
    {"beer", "beers", "bière", "bières", F, kDrink, true},
    {"book", "books", "livre", "livres", M, kText},
    {"letter", "letters", "lettre", "lettres", F, kText},
    {"newspaper", "newspapers", "journal", "journaux", M, kText},
    {"story", "stories", "histoire", "histoires", F, kText},
    {"poem", "poems", "poème", "poèmes", M, kText},
    {"message", "messages", "message", "messages", M, kText},
    {"hat", "hats", "chapeau", "chapeaux", M, kClothing},
    {"shirt", "shirts", "chemise", "chemises", F, kClothing},
    {"dress", "dresses", "robe", "robes", F, kClothing},
    {"coat", "coats", "manteau", "manteaux", M, kClothing},
    {"shoe", "shoes", "chaussure", "chaussures", F, kClothing},
    {"skirt", "skirts", "jupe", "jupes", F, kClothing},
    {"key", "keys", "clé", "clés", F, kThing},
    {"table", "tables", "table", "tables", F, kThing},
    {"chair", "chairs", "chaise", "chaises", F, kThing},
    {"lamp", "lamps", "lampe", "lampes", F, kThing},
    {"umbrella", "umbrellas", "parapluie", "parapluies", M, kThing},
    {"knife", "knives", "couteau", "couteaux", M, kThing},
    {"glass", "glasses", "verre", "verres", M, kThing},
    {"flower", "flowers", "fleur", "fleurs", F, kThing},
    {"watch", "watches", "montre", "montres", F, kThing},
    {"photo", "photos", "photo", "photos", F, kThing},
    {"computer", "computers", "ordinateur", "ordinateurs", M, kThing},
    {"gift", "gifts", "cadeau", "cadeaux", M, kThing},
    {"car", "cars", "voiture", "voitures", F, kVehicle},
    {"bicycle", "bicycles", "vélo", "vélos", M, kVehicle},
    {"boat", "boats", "bateau", "bateaux", M, kVehicle},
    {"plane", "planes", "avion", "avions", M, kVehicle},
    {"house", "houses", "maison", "maisons", F, kPlace | kRoom},
    {"garden", "gardens", "jardin", "jardins", M, kPlace | kRoom},
    {"kitchen", "kitchens", "cuisine", "cuisines", F, kPlace | kRoom},
    {"school", "schools", "école", "écoles", F, kPlace | kRoom},
    {"church", "churches", "église", "églises", F, kPlace | kRoom},
    {"hotel", "hotels", "hôtel", "hôtels", M, kPlace | kRoom},
    {"hospital", "hospitals", "hôpital", "hôpitaux", M, kPlace | kRoom},
    {"park", "parks", "parc", "parcs", M, kPlace | kRoom},
    {"station", "stations", "gare", "gares", F, kPlace},
    {"market", "markets", "marché", "marchés", M, kPlace},
    {"museum", "museums", "musée", "musées", M, kPlace | kRoom},
    {"shop", "shops", "magasin", "magasins", M, kPlace | kRoom},
    {"bridge", "bridges", "pont", "ponts", M, kPlace},
    {"island", "islands", "île", "îles", F, kPlace},
});

constexpr unsigned kGoods = kFood | kDrink | kText | kClothing | kThing | kVehicle;
constexpr unsigned kSmall = kText | kClothing | kThing;

const std::vector<Verb>& verb_table() {
  const Conjugation manger{
      "manger", {"mange", "mange", "mangeons", "mangez", "mangent"}, "mangé", "manger", "mange"};
  const Conjugation acheter{"acheter",
                            {"achète", "achète", "achetons", "achetez", "achètent"},
                            "acheté",
                            "achèter",
                            "achet"};
  const Conjugation boire{
      "boire", {"bois", "boit", "buvons", "buvez", "boivent"}, "bu", "boir", "buv"};
  const Conjugation lire{"lire", {"lis", "lit", "lisons", "lisez", "lisent"}, "lu", "lir", "lis"};
  const Conjugation ecrire{
      "écrire", {"écris", "écrit", "écrivons", "écrivez", "écrivent"}, "écrit", "écrir", "écriv"};
  const Conjugation voir{
      "voir", {"vois", "voit", "voyons", "voyez", "voient"}, "vu", "verr", "voy"};
  const Conjugation vendre{
      "vendre", {"vends", "vend", "vendons", "vendez", "vendent"}, "vendu", "vendr", "vend"};
  const Conjugation perdre{
      "perdre", {"perds", "perd", "perdons", "perdez", "perdent"}, "perdu", "perdr", "perd"};
  const Conjugation prendre{
      "prendre", {"prends", "prend", "prenons", "prenez", "prennent"}, "pris", "prendr", "pren"};
  const Conjugation choisir{"choisir",
                            {"choisis", "choisit", "choisissons", "choisissez", "choisissent"},
                            "choisi",
                            "choisir",
                            "choisiss"};
  const Conjugation attendre{"attendre",
                             {"attends", "attend", "attendons", "attendez", "attendent"},
                             "attendu",
                             "attendr",
                             "attend"};
  const Conjugation avoir{"avoir", {"ai", "a", "avons", "avez", "ont"}, "eu", "aur", "av"};
  const Conjugation aller{"aller", {"vais", "va", "allons", "allez", "vont"}, "allé", "ir", "all",
                          true};
  const Conjugation revenir{"revenir", {"reviens", "revient", "revenons", "revenez", "reviennent"},
                            "revenu",  "reviendr",
                            "reven",   true};
  const Conjugation sortir{
      "sortir", {"sors", "sort", "sortons", "sortez", "sortent"}, "sorti", "sortir", "sort", true};
  const Conjugation partir{
      "partir", {"pars", "part", "partons", "partez", "partent"}, "parti", "partir", "part", true};
  const Conjugation dormir{
      "dormir", {"dors", "dort", "dormons", "dormez", "dorment"}, "dormi", "dormir", "dorm"};
  Conjugation arriver = regular("arriver");
  arriver.with_etre = true;
  Conjugation tomber = regular("tomber");
  tomber.with_etre = true;
  static const std::vector<Verb> table{
      {"eat", "eats", "ate", "eating", "", "", kFood, false, manger},
      {"drink", "drinks", "drank", "drinking", "", "", kDrink, false, boire},
      {"buy", "buys", "bought", "buying", "", "", kGoods, false, acheter},
      {"sell", "sells", "sold", "selling", "", "", kGoods, false, vendre},
      {"read", "reads", "read", "reading", "", "", kText, false, lire},
      {"write", "writes", "wrote", "writing", "", "", kText, false, ecrire},
      {"see", "sees", "saw", "seeing", "", "", kGoods | kPerson | kAnimal | kPlace, true, voir},
      {"watch", "watches", "watched", "watching", "", "", kPerson | kAnimal | kVehicle, false,
       regular("regarder")},
      {"look for", "looks for", "looked for", "looking for", "", "",
       kSmall | kPerson | kAnimal | kPlace, false, regular("chercher")},
      {"find", "finds", "found", "finding", "", "", kSmall | kAnimal | kFood, true,
       regular("trouver")},
      {"lose", "loses", "lost", "losing", "", "", kSmall, false, perdre},
      {"take", "takes", "took", "taking", "", "", kSmall | kFood | kVehicle, false, prendre},
      {"choose", "chooses", "chose", "choosing", "", "", kSmall | kFood | kDrink, false, choisir},
      {"wait for", "waits for", "waited for", "waiting for", "", "", kPerson | kVehicle, false,
       attendre},
      {"like", "likes", "liked", "liking", "", "", kGoods | kPerson | kAnimal, true,
       regular("aimer")},
      {"have", "has", "had", "having", "", "", kSmall | kAnimal | kVehicle, true, avoir},
      {"wear", "wears", "wore", "wearing", "", "", kClothing, false, regular("porter")},
      {"draw", "draws", "drew", "drawing", "", "", kAnimal | kPlace | kThing, false,
       regular("dessiner")},
      {"help", "helps", "helped", "helping", "", "", kPerson, false, regular("aider")},
      {"invite", "invites", "invited", "inviting", "", "", kPerson, false, regular("inviter")},
      {"visit", "visits", "visited", "visiting", "", "", kPlace, false, regular("visiter")},
      {"repair", "repairs", "repaired", "repairing", "", "", kVehicle | kThing, false,
       regular("réparer")},
      {"cook", "cooks", "cooked", "cooking", "", "", kFood, false, regular("préparer")},
      {"wash", "washes", "washed", "washing", "", "", kClothing | kVehicle, false,
       regular("laver")},
      {"show", "shows", "showed", "showing", "", "", kSmall | kPlace, false, regular("montrer")},
      {"speak", "speaks", "spoke", "speaking", "to", "à", kPerson | kAnimal, false,
       regular("parler")},
      {"think", "thinks", "thought", "thinking", "about", "à", kPerson | kPlace | kText, false,
       regular("penser")},
      {"talk", "talks", "talked", "talking", "about", "de", kPerson | kText | kPlace | kAnimal,
       false, regular("parler")},
      {"go", "goes", "went", "going", "to", "à", kPlace, false, aller},
      {"come back", "comes back", "came back", "coming back", "from", "de", kPlace, false, revenir},
      {"go out", "goes out", "went out", "going out", "of", "de", kRoom, false, sortir},
      {"sleep", "sleeps", "slept", "sleeping", "", "", 0, false, dormir},
      {"work", "works", "worked", "working", "", "", 0, false, regular("travailler")},
      {"sing", "sings", "sang", "singing", "", "", 0, false, regular("chanter")},
      {"dance", "dances", "danced", "dancing", "", "", 0, false, regular("danser")},
      {"arrive", "arrives", "arrived", "arriving", "", "", 0, false, arriver},
      {"leave", "leaves", "left", "leaving", "", "", 0, false, partir},
      {"fall", "falls", "fell", "falling", "", "", 0, false, tomber},
  };
  return table;
}

constexpr unsigned kLiving = kPerson | kAnimal;
constexpr unsigned kMade = kText | kClothing | kThing | kVehicle | kPlace;

constexpr auto kAdjectives = std::to_array<Adjective>({
    {"big", "grand", "grande", "grands", "grandes", "", true, kLiving | kMade},
    {"small", "petit", "petite", "petits", "petites", "", true, kLiving | kMade},
    {"beautiful", "beau", "belle", "beaux", "belles", "bel", true, kLiving | kMade},
    {"old", "vieux", "vieille", "vieux", "vieilles", "vieil", true, kLiving | kMade},
    {"new", "nouveau", "nouvelle", "nouveaux", "nouvelles", "nouvel", true, kMade},
    {"good", "bon", "bonne", "bons", "bonnes", "", true, kFood | kDrink | kText | kPerson},
    {"bad", "mauvais", "mauvaise", "mauvais", "mauvaises", "", true, kFood | kDrink | kText},
    {"young", "jeune", "jeune", "jeunes", "jeunes", "", true, kLiving},
    {"red", "rouge", "rouge", "rouges", "rouges", "", false, kClothing | kFood | kThing | kVehicle},
    {"green", "vert", "verte", "verts", "vertes", "", false, kClothing | kThing | kVehicle},
    {"white", "blanc", "blanche", "blancs", "blanches", "", false, kClothing | kAnimal | kThing},
    {"black", "noir", "noire", "noirs", "noires", "", false, kClothing | kAnimal | kVehicle},
    {"blue", "bleu", "bleue", "bleus", "bleues", "", false, kClothing | kThing | kVehicle},
    {"expensive", "cher", "chère", "chers", "chères", "", false, kMade | kFood | kDrink},
    {"tired", "fatigué", "fatiguée", "fatigués", "fatiguées", "", false, kLiving},
    {"happy", "heureux", "heureuse", "heureux", "heureuses", "", false, kLiving},
    {"intelligent", "intelligent", "intelligente", "intelligents", "intelligentes", "", false,
     kLiving},
    {"kind", "gentil", "gentille", "gentils", "gentilles", "", false, kLiving},
    {"cold", "froid", "froide", "froids", "froides", "", false, kFood | kDrink},
    {"hot", "chaud", "chaude", "chauds", "chaudes", "", false, kFood | kDrink},
    {"French", "français", "française", "français", "françaises", "", false,
     kPerson | kFood | kDrink | kText},
    {"interesting", "intéressant", "intéressante", "intéressants", "intéressantes", "", false,
     kText | kPlace},
});

constexpr auto kPast = std::to_array<Tail>({{"yesterday", "hier"},
                                            {"last week", "la semaine dernière"},
                                            {"last year", "l'année dernière"},
                                            {"two days ago", "il y a deux jours"}});
constexpr auto kPresent = std::to_array<Tail>(
    {{"today", "aujourd'hui"}, {"now", "maintenant"}, {"this week", "cette semaine"}});
constexpr auto kFuture = std::to_array<Tail>({{"tomorrow", "demain"},
                                              {"next week", "la semaine prochaine"},
                                              {"next month", "le mois prochain"},
                                              {"in three days", "dans trois jours"}});
constexpr auto kFixed = std::to_array<Tail>({{"Good morning!", "Bonjour !"},
                                             {"Good evening!", "Bonsoir !"},
                                             {"Thank you very much.", "Merci beaucoup."},
                                             {"Goodbye!", "Au revoir !"},
                                             {"See you tomorrow.", "À demain."},
                                             {"Where is the station?", "Où est la gare ?"},
                                             {"What time is it?", "Quelle heure est-il ?"},
                                             {"How are you?", "Comment allez-vous ?"}});

}  // namespace

std::span<const Noun> nouns() {
  return kNouns;
}
std::span<const Verb> verbs() {
  return verb_table();
}
std::span<const Adjective> adjectives() {
  return kAdjectives;
}
std::span<const Tail> past_tails() {
  return kPast;
}
std::span<const Tail> present_tails() {
  return kPresent;
}
std::span<const Tail> future_tails() {
  return kFuture;
}
std::span<const Tail> fixed_phrases() {
  return kFixed;
}

}  // namespace stretto::phrasebook
