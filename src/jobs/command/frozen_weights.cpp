#include "jobs/command/frozen_weights.h"

#include <array>
#include <optional>
#include <string_view>

#include "core/text.h"
#include "jobs/command/words.h"

namespace krigtune::jobs {
namespace {

// They decide whether adapters are trained.
constexpr std::array<std::string_view, 13> kDecide = {
    "--finetuning_type", "--use_lora",   "--use_peft", "--lora_enable", "--train_type",
    "--sft_type",        "--tuner_type", "--lora",     "--peft",        "--peft_type",
    "--peft_method",     "--adapter",    "--use_dora"};
// Sizes of adapters: they count unless another flag says that there are none, as in "--lora_enable False --lora_r 8".
constexpr std::array<std::string_view, 8> kSizes = {"--lora_r",       "--lora_rank",   "--lora_dim",
                                                    "--lora_alpha",   "--lora_target", "--lora_target_modules",
                                                    "--lora_modules", "--lora_dropout"};
constexpr std::array<std::string_view, 7> kQuantised = {
    "--load_in_4bit", "--load_in_8bit",     "--use_qlora",         "--qlora",
    "--q_lora",       "--quantization_bit", "--only_optimize_lora"};
constexpr std::array<std::string_view, 9> kNo = {"false", "no", "f", "n", "0", "none", "null", "full", ""};

struct Said {
  bool yes;
  std::string words;
};

// The last one counts, as in argparse.
std::optional<Said> said(const Command& command, std::string_view flag) {
  const std::vector<std::string>& words = command.argv;
  const std::vector<FlagAt> places = occurrences(words, command.script + 1, words.size(), flag);
  if (places.empty()) return std::nullopt;
  const FlagAt& last = places.back();
  if (!last.value_word) return Said{true, words[last.word]};
  const std::string value = value_at(words, last);
  return Said{!is_one_of(lower_case(value), kNo), last.is_joined ? words[last.word] : words[last.word] + " " + value};
}

}  // namespace

std::string frozen_weights(const Command& command) {
  bool is_refused = false;
  for (const std::string_view flag : kDecide) {
    const std::optional<Said> found = said(command, flag);
    if (found && found->yes) return found->words;
    is_refused = is_refused || found;
  }
  for (const std::string_view flag : kQuantised) {
    if (const std::optional<Said> found = said(command, flag); found && found->yes) return found->words;
  }
  for (const std::string_view flag : kSizes) {
    const std::optional<Said> found = is_refused ? std::nullopt : said(command, flag);
    if (found && found->yes) return found->words;
  }
  return "";
}

}  // namespace krigtune::jobs
