// Tests the choice between attention's kernels for Hopper and the others: it depends on the result of a check, which
// may also fail, hang, or be impossible to start. Scripts stand in for the program that runs the check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/error.h"
#include "core/files.h"
#include "programs/bench/cuda/attention_choice.h"
#include "trial/temporary_directory.h"

namespace krigtune::bench {
namespace {

using testing::HasSubstr;

class AttentionChoiceTest : public testing::Test {
 protected:
  static workload::Workload workload(std::int64_t head_size, workload::Precision precision) {
    workload::Workload result;
    result.model.heads = 4;
    result.model.hidden = 4 * head_size;
    result.precision = precision;
    return result;
  }
  // Returns the choice if the check runs `script`. The check writes its arguments to the file asked().
  AttentionChoice chosen(const std::string& script, const workload::Workload& job) {
    const auto program = dir_.write_program("check.sh", "echo \"$*\" > " + asked().string() + "\n" + script + "\n");
    return choose_attention(job, 0, environment(), program);
  }
  AttentionChoice chosen(const std::string& script) { return chosen(script, workload(64, workload::Precision::kBf16)); }

  engine::Environment environment() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  std::filesystem::path asked() const { return dir_.path() / "asked"; }

  TemporaryDirectory dir_;
  std::map<std::string, std::string> variables_;
};

TEST_F(AttentionChoiceTest, IsForHopperWhereTheCheckPasses) {
  const AttentionChoice choice = chosen("exit 0", workload(128, workload::Precision::kFp16));
  EXPECT_TRUE(choice.hopper);
  EXPECT_EQ(choice.warning, "");
  EXPECT_EQ(read_text(asked()), "--check-attention 0 fp16 128\n");
}

TEST_F(AttentionChoiceTest, SaysInOneLineWhyTheCheckFailed) {
  const std::map<std::string, std::string> whys = {
      {"echo outputs differ by 0.5 of their size; echo more; exit 1",
       "because those for Hopper fail their check: outputs differ by 0.5 of their size; KRIGTUNE_HOPPER_ATTENTION=off"},
      {"exit 5", "it ends with code 5"},
      {"kill -ALRM $$", "it has not ended within 30 s"},
      {"kill -SEGV $$", "it was ended by signal 11"}};
  for (const auto& [script, why] : whys) {
    const AttentionChoice choice = chosen(script);
    EXPECT_FALSE(choice.hopper) << script;
    EXPECT_THAT(choice.warning, HasSubstr(why));
    EXPECT_EQ(choice.warning.find('\n'), std::string::npos);
  }
  const AttentionChoice none =
      choose_attention(workload(64, workload::Precision::kBf16), 0, environment(), dir_.path() / "nothing");
  EXPECT_FALSE(none.hopper);
  EXPECT_THAT(none.warning, HasSubstr("it cannot be started: No such file"));
}

TEST_F(AttentionChoiceTest, AsksNothingWhereTheJobDoesNotSuitOrTheUserSaysOff) {
  workload::Workload dropping = workload(64, workload::Precision::kBf16);
  dropping.model.dropout = 0.1;
  for (const workload::Workload& job :
       {workload(96, workload::Precision::kBf16), workload(64, workload::Precision::kFp32), dropping}) {
    EXPECT_FALSE(chosen("exit 0", job).hopper);
  }
  variables_["KRIGTUNE_HOPPER_ATTENTION"] = "off";
  EXPECT_FALSE(chosen("exit 0").hopper);
  EXPECT_FALSE(std::filesystem::exists(asked()));
  variables_["KRIGTUNE_HOPPER_ATTENTION"] = "on";
  EXPECT_THROW(chosen("exit 0"), UserError);
}

// Runs the check itself on the emulation, which has the features of a Hopper GPU.
TEST(CheckAttention, PassesAndRefusesOtherWords) {
  std::ostringstream out;
  EXPECT_EQ(check_attention({kCheckAttention, "0", "bf16", "64"}, out), 0);
  EXPECT_EQ(out.str(), "");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{kCheckAttention},
                                                {kCheckAttention, "0", "fp32", "64"},
                                                {kCheckAttention, "0", "bf16", "96"},
                                                {kCheckAttention, "x", "bf16", "64"}}) {
    EXPECT_THROW(check_attention(wrong, out), UserError);
  }
  EXPECT_EQ(check_attention({kCheckAttention, "7", "bf16", "64"}, out), 1) << "there is no such GPU";
  EXPECT_THAT(out.str(), HasSubstr("cudaSetDevice"));
}

}  // namespace
}  // namespace krigtune::bench
