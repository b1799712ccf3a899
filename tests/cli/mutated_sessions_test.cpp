// Randomly damaged sessions are read, or refused in one line; they never cause a crash or a long wait.
// KRIGTUNE_TEST_MUTATIONS: their number (5000); KRIGTUNE_TEST_SEED: the seed of the damage (1).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>

#include "cli/example_sessions.h"
#include "core/error.h"
#include "core/json.h"
#include "krigtune/rng.h"

namespace krigtune::mutated_sessions_test {

std::int64_t number_from(const char* variable, std::int64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoll(text);
}

/// Damages sessions. Every random draw comes from one seed.
class Mutator {
 public:
  Mutator(std::vector<std::string> texts, std::uint64_t seed) : texts_(std::move(texts)), rng_(seed, 0) {}

  template <class List>
  auto pick(const List& list) {
    return list[rng_.below(list.size())];
  }

  std::string next() {
    std::string text = pick(texts_);
    const bool by_structure = rng_.below(3) != 0;
    if (by_structure) text = damaged_json(text);
    const std::uint64_t wounds = by_structure ? rng_.below(4) / 3 : 1 + rng_.below(3);
    for (std::uint64_t i = 0; i < wounds; ++i) wound(text);
    return text;
  }

 private:
  std::size_t position(const std::string& text) { return rng_.below(text.size() + 1); }

  void wound(std::string& text) {
    const std::size_t at = position(text);
    const std::size_t length = 1 + rng_.below(12);
    switch (rng_.below(7)) {
      case 0:
        if (at < text.size())
          text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << rng_.below(8)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3: {  // a piece of another session
        const std::string other = pick(texts_);
        text.insert(at, other.substr(position(other), 4 * length));
        break;
      }
      case 4:
        replace_number(text, at);
        break;
      case 5:
        swap_words(text);
        break;
      default:
        text.resize(at);
    }
  }

  void replace_number(std::string& text, std::size_t at) {
    static constexpr std::array kNumbers = {
        "0", "-1",  "1e308",      "1e19", "-1e19",   "9223372036854775807", "1e-320", "0.5", "1e9", "1e999",
        "3", "007", "2147483648", "-0.0", "1000000", "999999999999"};
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789.e+-", begin), text.size());
    text.replace(begin, end - begin, pick(kNumbers));
  }

  // Exchanges two quoted words: keys, names, values.
  void swap_words(std::string& text) {
    const std::string first = quoted_after(text, position(text));
    const std::string second = quoted_after(text, position(text));
    const std::size_t at = text.find(first);
    if (first.empty() || second.empty() || at == std::string::npos) return;
    text.replace(at, first.size(), second);
  }
  static std::string quoted_after(const std::string& text, std::size_t at) {
    const std::size_t begin = text.find('"', at);
    const std::size_t end = begin == std::string::npos ? begin : text.find('"', begin + 1);
    return end == std::string::npos ? "" : text.substr(begin, end - begin + 1);
  }

  std::string damaged_json(const std::string& text) {
    Json json;
    try {
      json = parse_json(text, "example");
    } catch (const UserError&) {
      return text;
    }
    Json* target = &json;
    while (target->is_structured() && !target->empty() && rng_.below(5) != 0) {
      auto member = target->begin();
      std::advance(member, static_cast<std::ptrdiff_t>(rng_.below(target->size())));
      target = &*member;
    }
    damage(*target);
    return json.dump();
  }

  void damage(Json& target) {
    static const std::vector<Json> kOthers = {Json(nullptr),
                                              Json(true),
                                              Json(0),
                                              Json(-1),
                                              Json(1e308),
                                              Json(1e19),
                                              Json(2.5),
                                              Json(""),
                                              Json("x"),
                                              Json("local"),
                                              Json::array(),
                                              Json::object(),
                                              Json::array({1, 1}),
                                              Json::array({1, 2, 1000000}),
                                              Json({{"min", 1}, {"max", 50000}}),
                                              Json({{"min", 0}, {"max", 1e15}}),
                                              Json({{"type", "real"}, {"min", 0}, {"max", 1}}),
                                              Json("a < b"),
                                              Json({{"values", {1, 2, 3}}, {"when", "a == 1"}})};
    if (target.is_object() && !target.empty() && rng_.below(2) == 0) {
      auto member = target.begin();
      std::advance(member, static_cast<std::ptrdiff_t>(rng_.below(target.size())));
      const Json value = member.value();
      const std::string key = member.key();
      if (rng_.below(2) == 0) {
        target.erase(key);
      } else {
        target[key + std::string(1 + rng_.below(3), 'x')] = value;
      }
    } else if (target.is_array() && !target.empty() && rng_.below(2) == 0) {
      target.push_back(target[rng_.below(target.size())]);
    } else {
      target = pick(kOthers);
    }
  }

  std::vector<std::string> texts_;
  Rng rng_;
};

TEST(MutatedSession, IsReadOrRefusedInOneLine) {
  std::vector<std::string> texts;
  for (const ExampleSession& session : own_sessions()) texts.push_back(session.text);
  texts.push_back(made_by_init().text);
  const auto seed = static_cast<std::uint64_t>(number_from("KRIGTUNE_TEST_SEED", 1));
  const std::int64_t count = number_from("KRIGTUNE_TEST_MUTATIONS", 5000);
  Mutator mutator(texts, seed);
  const TemporaryDirectory directory;
  std::array<std::int64_t, 3> codes{};
  const SystemClock clock;
  std::pair<double, std::string> slowest;  // seconds, session
  for (std::int64_t i = 0; i < count && !HasFailure(); ++i) {
    const std::string text = mutator.next();
    const auto file = directory.write("session.json", text);
    const double begin_s = clock.now_s();
    const Said said = run_krigtune({"plan", file.string(), "--show-config"});
    SCOPED_TRACE("seed " + std::to_string(seed) + ", mutation " + std::to_string(i) + ":\n" + text);
    slowest = std::max(slowest, {clock.now_s() - begin_s, text});
    ASSERT_TRUE(said.code == 0 || said.code == 2) << said.code << ": " << said.err;
    ++codes[static_cast<std::size_t>(said.code)];
    if (said.code == 2) {
      EXPECT_EQ(lines_in(said.err), 1U) << said.err;
      EXPECT_EQ(said.out, "");
      EXPECT_LE(said.err.size(), 1000U) << said.err;
    } else {
      EXPECT_NE(said.out, "");
    }
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1) << "nothing else was written";
  std::cout << codes[0] << " read, " << codes[2] << " refused; the slowest took " << slowest.first << " s:\n"
            << slowest.second << "\n";
  EXPECT_GT(codes[0] * 20, count) << "damage so great that little is read";
  EXPECT_GT(codes[2] * 5, count);
}

}  // namespace krigtune::mutated_sessions_test
