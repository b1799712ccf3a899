// How a job divides its ranks, and what they do beside computing their own part. Names, sources and conventions are
// those of space/well_known.cpp.
#include "space/parallel_parameters.h"

namespace krigtune::space {

WellKnownParameter tensor_parallel() {
  return {
      .name = kTensorParallel,
      .unit = "ranks",
      .meaning = "over how many ranks each layer is split",
      .default_value = std::int64_t{1},
      .default_range = R"({"min": 1, "max": 8, "scale": "log2"})",
      .smallest = 1,
      .splits_ranks = RankSplit::kModel,
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/tensor_parallel/autotp_size", .largest = kMostCount, .off = std::int64_t{1}},
      .other_names = {{"tp", "nanotron, scripts"},
                      {"tensor_parallel_size", "vLLM, scripts"},
                      {"tensor_model_parallel_size", "Megatron-LM, NeMo"},
                      {"tensor_parallel_degree", "torchtitan"},
                      {"tp_size", "scripts"},
                      {"autotp_size", "DeepSpeed"}},
      .rule = {.log_speed = -0.2, .log_memory = -0.4, .success_slope = 1.0},
  };
}

WellKnownParameter sequence_parallel() {
  return {
      .name = kSequenceParallel,
      .meaning = "whether norms, dropouts and residuals are split over the tensor-parallel ranks by tokens",
      .no_effect = "on one tensor-parallel rank",
      .no_effect_if = "tensor_parallel == 1",
      .default_value = false,
      .default_range = "[true, false]",
      .modelling = Modelling::kFull,
      .rule = {.log_memory = -0.15},
  };
}

WellKnownParameter pipeline_parallel() {
  return {
      .name = kPipelineParallel,
      .unit = "ranks",
      .meaning = "over how many ranks the layers are distributed; predicted, not run by krigtune-bench",
      .default_value = std::int64_t{1},
      .default_range = R"({"min": 1, "max": 8, "scale": "log2"})",
      .smallest = 1,
      .splits_ranks = RankSplit::kModel,
      .modelling = Modelling::kFull,
      .other_names = {{"pp", "nanotron, scripts"},
                      {"pipeline_parallel_size", "scripts"},
                      {"pipeline_model_parallel_size", "Megatron-LM, NeMo"},
                      {"pipeline_parallel_degree", "torchtitan"},
                      {"pp_size", "scripts"}},
      .rule = {.log_speed = -0.2, .log_memory = -0.3},
  };
}

// Narayanan et al. 2021, section 2.2: a rank has several stages of fewer layers, so that stages wait less.
WellKnownParameter virtual_pipeline() {
  return {
      .name = kVirtualPipeline,
      .unit = "stages per rank",
      .meaning =
          "how many stages each pipeline rank has (interleaved 1F1B; 1 is plain 1F1B); predicted, but not run by "
          "krigtune-bench",
      .no_effect = "on one pipeline rank",
      .no_effect_if = "pipeline_parallel == 1",
      .default_value = std::int64_t{1},
      .default_range = R"({"values": [1, 2, 3, 4, 6, 8], "scale": "log"})",
      .smallest = 1,
      .modelling = Modelling::kFull,
      .other_names = {{"vp", "scripts"},
                      {"vpp", "scripts"},
                      {"vpp_size", "scripts"},
                      {"virtual_pipeline_model_parallel_size", "NeMo, LLaMA-Factory"},
                      {"num_virtual_stages_per_pipeline_rank", "Megatron-LM"}},
  };
}

// Qi et al. 2024, arXiv:2401.10241 and arXiv:2405.15362; DeepSeek-AI 2024, arXiv:2412.19437.
WellKnownParameter pipeline_schedule() {
  return {
      .name = kPipelineSchedule,
      .meaning =
          "in which order pipeline ranks work: 1f1b (interleaved with virtual_pipeline), gpipe (all forwards first), "
          "or one of the schedules that make gradients of weights later, to fill the time in which a rank would wait: "
          "zb-h1, zb-h2, and with two stages a rank zb-v, v-half and v-min, which keep less, and dualpipe-v; "
          "predicted, "
          "but not run by krigtune-bench",
      .no_effect = "on one pipeline rank",
      .no_effect_if = "pipeline_parallel == 1",
      .default_value = "1f1b",
      .default_range = R"(["1f1b", "zb-h1", "zb-h2", "zb-v"])",
      .modelling = Modelling::kFull,
  };
}

WellKnownParameter context_parallel() {
  return {
      .name = kContextParallel,
      .unit = "ranks",
      .meaning =
          "over how many ranks the tokens of a sequence are distributed; predicted, but not run by krigtune-bench",
      .default_value = std::int64_t{1},
      .default_range = R"({"min": 1, "max": 8, "scale": "log2"})",
      .smallest = 1,
      .splits_ranks = RankSplit::kSequence,
      .modelling = Modelling::kFull,
      .other_names = {{"cp", "scripts"},
                      {"context_parallel_size", "Megatron-LM, nanotron"},
                      {"context_parallel_degree", "torchtitan"},
                      {"cp_size", "scripts"}},
      .rule = {.log_memory = -0.3},
  };
}

// Liu et al. 2023, arXiv:2310.01889; Jacobs et al. 2023, "DeepSpeed Ulysses", arXiv:2309.14509; Fang and Zhao 2024,
// "USP", arXiv:2405.07719. Megatron-LM: --cp-comm-type p2p, all_gather, a2a, a2a+p2p.
WellKnownParameter context_kind() {
  return {
      .name = kContextKind,
      .meaning =
          "how ranks that share a sequence attend to each other's tokens: keys and values go round while attention "
          "computes (ring), every rank gathers all of them first (allgather), each rank gets all tokens of some heads "
          "(alltoall: Ulysses), or both, within nodes and between them (alltoall+ring); predicted, but not run by "
          "krigtune-bench",
      .no_effect = "where each rank has whole sequences",
      .no_effect_if = "context_parallel == 1",
      .default_value = "ring",
      .default_range = R"(["ring", "alltoall"])",
      .modelling = Modelling::kFull,
      .other_names = {{"cp_comm_type", "Megatron-LM, Megatron-Bridge"}},
  };
}

WellKnownParameter expert_parallel() {
  return {
      .name = kExpertParallel,
      .unit = "ranks",
      .meaning =
          "over how many of the data-parallel ranks the experts of a model are distributed; predicted for Megatron "
          "and nanotron, but not run by krigtune-bench",
      .default_value = std::int64_t{1},
      .default_range = R"({"min": 1, "max": 8, "scale": "log2"})",
      .smallest = 1,
      .splits_ranks = RankSplit::kDataRanks,
      .modelling = Modelling::kFull,
      .other_names = {{"ep", "scripts"},
                      {"expert_model_parallel_size", "Megatron-LM"},
                      {"expert_parallel_size", "nanotron"},
                      {"expert_parallel_degree", "torchtitan"},
                      {"ep_size", "DeepSpeed, scripts"}},
      .rule = {.log_memory = -0.3},
  };
}

WellKnownParameter expert_tensor_parallel() {
  return {
      .name = kExpertTensorParallel,
      .unit = "ranks",
      .meaning =
          "over how many tensor-parallel ranks each expert is split: as many as tensor_parallel (0, or that number), "
          "or 1, "
          "where each of them has whole experts; predicted for Megatron",
      .no_effect = "with one tensor-parallel rank",
      .no_effect_if = "tensor_parallel == 1",
      .default_value = std::int64_t{0},
      .default_range = "[0, 1]",
      .modelling = Modelling::kFull,
      .other_names = {{"etp", "scripts"},
                      {"expert_tensor_parallel_size", "Megatron-LM, Megatron-Bridge"},
                      {"expert_tensor_parallel_degree", "torchtitan"}},
  };
}

// DeepEP: github.com/deepseek-ai/DeepEP; Megatron Core: transformer/moe/token_dispatcher.py.
WellKnownParameter moe_dispatch() {
  return {
      .name = kMoeDispatch,
      .meaning =
          "how tokens reach the ranks of their experts: an all-to-all, a gather of all tokens, or once to each node "
          "and "
          "from there to its ranks (flex: DeepEP, HybridEP); predicted for Megatron",
      .no_effect = "where each rank has all experts",
      .no_effect_if = "expert_parallel == 1",
      .default_value = "alltoall",
      .default_range = R"(["alltoall", "flex"])",
      .modelling = Modelling::kFull,
      .other_names = {{"moe_token_dispatcher_type", "Megatron-LM, Megatron-Bridge"}},
  };
}

// Megatron Core: core/models/common/model_chunk_schedule_plan.py and core/pipeline_parallel/combined_1f1b.py.
WellKnownParameter moe_overlap() {
  return {
      .name = kMoeOverlap,
      .meaning =
          "whether tokens travel to their experts and back while another micro-batch is computed; predicted for "
          "Megatron",
      .no_effect = "where each rank has all experts",
      .no_effect_if = "expert_parallel == 1",
      .default_value = false,
      .default_range = "[false, true]",
      .modelling = Modelling::kFull,
      .other_names = {{"overlap_moe_expert_parallel_comm", "Megatron-LM, Megatron-Bridge"}},
  };
}

// Transformer Engine's userbuffers: te/pytorch/module/base.py, initialize_ub.
WellKnownParameter tensor_overlap() {
  return {
      .name = kTensorOverlap,
      .meaning =
          "whether the linear layers exchange tokens with the other tensor-parallel ranks piece by piece beside their "
          "products; predicted for Megatron with sequence_parallel",
      .no_effect = "on one tensor-parallel rank",
      .no_effect_if = "tensor_parallel == 1",
      .default_value = false,
      .default_range = "[false, true]",
      .modelling = Modelling::kFull,
      .other_names = {{"enable_async_tensor_parallel", "torchtitan"}},
  };
}

// torchtitan: --parallelism.data_parallel_shard_degree beside data_parallel_replicate_degree. Megatron-LM:
// --num-distributed-optimizer-instances is the number of such groups. DeepSpeed: MiCS (Zhang et al. 2022,
// arXiv:2205.00119; runtime/zero/mics.py), whose -1 is 0 here.
WellKnownParameter hybrid_shard() {
  return {
      .name = kHybridShard,
      .unit = "data-parallel ranks",
      .meaning =
          "over how many neighbouring data-parallel ranks the ZeRO stage shards; each such group holds a copy, and "
          "they sum their gradients (HSDP, MiCS); 0: over all; predicted, but not run by krigtune-bench",
      .no_effect = "at stage 0; on one data-parallel rank",
      .no_effect_if = "zero_stage == 0 || dp == 1",
      .default_value = std::int64_t{0},
      .default_range = "[0, 8]",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/mics_shard_size",
                    .first_stage = 3,
                    .largest = kMostCount,
                    .off = std::int64_t{0}},
      .other_names = {{"data_parallel_shard_degree", "torchtitan"},
                      {"dp_shard_size", "Accelerate, Axolotl"},
                      {"mics_shard_size", "DeepSpeed"}},
  };
}

// Wang et al. 2023, "ZeRO++", arXiv:2306.10209, section 3.2; FSDP2's reshard_after_forward as a number.
WellKnownParameter secondary_shard() {
  return {
      .name = kSecondaryShard,
      .unit = "ranks",
      .meaning =
          "over how many neighbouring ranks a second copy of the parameters is sharded, from which the backward pass "
          "gathers them (hpZ of ZeRO++); 1: there is none; predicted, but not run by krigtune-bench",
      .no_effect = "below stage 3; on one data-parallel rank",
      .no_effect_if = "zero_stage < 3 || dp == 1",
      .default_value = std::int64_t{1},
      .default_range = "[1, 8]",
      .smallest = 1,
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/zero_hpz_partition_size",
                    .first_stage = 3,
                    .largest = kMostCount,
                    .off = std::int64_t{1}},
      .other_names = {{"zero_hpz_partition_size", "DeepSpeed"}},
  };
}

}  // namespace krigtune::space
