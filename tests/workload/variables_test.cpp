#include "workload/variables.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace krigtune::variables_test {

using workload::Framework;

workload::Caveats caveats_of(const workload::Variables& variables, Framework framework = Framework::kFsdp,
                             bool offloads = false) {
  workload::Caveats caveats;
  workload::add_variables(variables, framework, offloads, caveats);
  return caveats;
}

std::string effect_of(const std::string& name, const std::string& value, Framework framework = Framework::kFsdp,
                      bool offloads = false) {
  const workload::Caveats caveats = caveats_of({{name, value}}, framework, offloads);
  return join(caveats.not_modelled, "; ") + join(caveats.also_not_modelled, "; ") + join(caveats.assumed, "; ");
}

TEST(Variables, ThatChangeTimeOrMemoryAreNamedWithTheDirection) {
  EXPECT_EQ(effect_of("NCCL_P2P_DISABLE", "1"), "NCCL_P2P_DISABLE=1: slower collectives within a node");
  EXPECT_EQ(effect_of("NCCL_ALGO", "Ring"), "NCCL_ALGO=Ring: other times of collectives");
  EXPECT_EQ(effect_of("CUDA_LAUNCH_BLOCKING", "1"), "CUDA_LAUNCH_BLOCKING=1: more time: nothing overlaps");
  EXPECT_EQ(effect_of("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: less memory: fewer fragments");
  EXPECT_EQ(effect_of("PYTORCH_ALLOC_CONF", "max_split_size_mb:128"),
            "PYTORCH_ALLOC_CONF=max_split_size_mb:128: other memory: other fragments");
  EXPECT_EQ(effect_of("NVTE_FLASH_ATTN", "0"), "NVTE_FLASH_ATTN=0: another kernel of attention: other times");
}

TEST(Variables, ThatChangeNothingAreLeftOut) {
  for (const char* name :
       {"WANDB_PROJECT", "HF_HOME", "TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_SOCKET_IFNAME",
        "OMP_NUM_THREADS", "MASTER_PORT", "PYTHONPATH", "TORCH_NCCL_TRACE_BUFFER_SIZE", "NVTE_FP8_DPA_BWD",
        "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "TORCH_DISTRIBUTED_DEBUG"})
    EXPECT_EQ(effect_of(name, "1"), "") << name;
  EXPECT_EQ(effect_of("NCCL_P2P_DISABLE", "0"), "");
  EXPECT_EQ(effect_of("CUDA_LAUNCH_BLOCKING", "False"), "");
  EXPECT_EQ(effect_of("NVTE_FLASH_ATTN", "1"), "");
}

TEST(Variables, DependOnTheFrameworkAndOnWhatIsOffloaded) {
  EXPECT_EQ(effect_of("CUDA_DEVICE_MAX_CONNECTIONS", "1", Framework::kMegatron), "");
  EXPECT_NE(effect_of("CUDA_DEVICE_MAX_CONNECTIONS", "1", Framework::kFsdp), "");
  EXPECT_NE(effect_of("CUDA_DEVICE_MAX_CONNECTIONS", "32", Framework::kMegatron), "");
  EXPECT_NE(effect_of("OMP_NUM_THREADS", "8", Framework::kDeepSpeed, true), "");
  EXPECT_NE(effect_of("TORCH_DISTRIBUTED_DEBUG", "DETAIL"), "");
}

// Only these take the right to exclude configurations because of their memory.
TEST(Variables, OfMemoryBeyondTheBoundsOfPredictionsAreApart) {
  const workload::Caveats time =
      caveats_of({{"NCCL_ALGO", "Ring"}, {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}});
  EXPECT_TRUE(time.not_modelled.empty());
  EXPECT_EQ(time.also_not_modelled.size(), 2U);
  const workload::Caveats eager = caveats_of({{"NVTE_FLASH_ATTN", "0"}, {"NVTE_FUSED_ATTN", "0"}});
  ASSERT_EQ(eager.not_modelled.size(), 1U);
  EXPECT_NE(eager.not_modelled.front().find("more memory"), std::string::npos);
  EXPECT_EQ(caveats_of({{"ACCELERATE_USE_FSDP", "true"}}).not_modelled.size(), 1U);
  EXPECT_TRUE(caveats_of({{"ACCELERATE_USE_FSDP", "false"}}).not_modelled.empty());
}

TEST(Variables, ThatNobodyKnowsAreNamedWithoutTheirValues) {
  EXPECT_EQ(caveats_of({{"MY_TOKEN", "s3cret"}, {"WANDB_API_KEY", "s3cret"}, {"DATA", "/d"}}).assumed.front(),
            "MY_TOKEN, DATA change neither time nor memory, because krigtune does not know them");
  EXPECT_TRUE(caveats_of({{"MBS", "{micro_batch}"}}).assumed.empty()) << "a parameter of the search";
  EXPECT_EQ(effect_of("NCCL_ALGO", "{nccl_algo}"), "NCCL_ALGO: other times of collectives");
}

}  // namespace krigtune::variables_test
