"""The vocabulary of screening: models, vendors, phrases of self-reference, error texts.

Pure data. In a term, a space stands for an optional joiner ("chat gpt" finds ChatGPT, Chat-GPT,
chat gpt). Terms are lower case. "Plain" terms count wherever they stand; "ambiguous" ones are
ordinary words, names or brands as well and count only beside words about models, a version
number, or the writer's "I am". The lists are frozen into a round by ``VOCABULARY_VERSION``.
"""

from __future__ import annotations

VOCABULARY_VERSION = "2026-1"

PLAIN_MODELS = (
    "chat gpt", "gpt", "gpt j", "gpt neo", "gpt neox", "gpt oss", "instruct gpt", "text davinci",
    "codex davinci", "claude ai", "claude opus", "claude sonnet", "claude haiku",
    "claude instant", "anthropic claude", "google gemini", "gemini pro", "gemini flash",
    "gemini ultra", "gemini nano", "google bard", "bard ai", "google palm", "google assistant",
    "med palm", "meta llama", "code llama", "llama chat", "llama instruct", "tiny llama",
    "open llama", "mixtral", "mistral ai", "mistral large", "mistral small", "mistral medium",
    "mistral nemo", "ministral", "codestral", "pixtral", "devstral", "magistral", "deep seek",
    "qwen", "qwq", "qvq", "chat glm", "glm edge", "auto glm", "intern lm", "intern vl",
    "baichuan", "yi lightning", "ernie bot", "baidu ernie", "pangu alpha", "hunyuan", "min cpm",
    "moonshot v1", "kimi k2", "kimi ai", "doubao", "skywork", "longcat", "xai grok", "grok ai",
    "grok beta", "microsoft copilot", "github copilot", "bing chat", "bing ai", "microsoft phi",
    "wizard lm", "wizard coder", "wizard vicuna", "open orca", "open hermes", "open assistant",
    "openassistant", "oasst", "stable lm", "stable vicuna", "stable beluga", "fast chat t5",
    "flan t5", "flan ul2", "flan palm", "t0pp", "mt0", "bloomz", "bloom chat", "dolly v2",
    "redpajama", "rwkv", "cerebras gpt", "mpt instruct", "mpt chat", "falcon instruct",
    "falcon chat", "koala 13b", "guanaco", "nous hermes", "nemotron", "nvlm", "dbrx",
    "amazon titan", "amazon nova", "alexa plus", "jurassic 2", "ai21 jamba", "command r plus",
    "cohere command", "aya expanse", "inflection pi", "pi ai", "reka core", "reka flash",
    "palmyra", "olmo", "tulu", "starcoder", "starling lm", "zephyr beta", "solar pro", "exaone",
    "hyperclova", "polyglot ko", "kogpt", "rinna", "apertus", "euro llm", "viking 33b", "gpt sw3",
    "smol lm", "gemma it", "shield gemma", "pali gemma", "code gemma", "dall e", "character ai",
    "blender bot", "galactica llm", "perplexity ai", "pythia sft", "alpaca lora", "openchat",
    "minimax m1", "abab6",
)  # fmt: skip

AMBIGUOUS_MODELS = (
    "claude", "gemini", "bard", "palm", "llama", "mistral", "phi", "grok", "copilot", "gemma",
    "falcon", "vicuna", "alpaca", "koala", "orca", "hermes", "bloom", "opt", "dolly", "pythia",
    "galactica", "titan", "nova", "jamba", "jurassic", "command r", "aya", "reka", "granite",
    "zephyr", "starling", "solar", "yi", "ernie", "kimi", "glm", "mpt", "sonnet", "opus", "haiku",
    "davinci", "mercury", "sydney", "bing", "siri", "alexa", "cortana", "watson", "o1", "o3",
    "o4", "minimax", "flan", "t5", "baize", "replika", "cleverbot", "lamda",
)  # fmt: skip

PLAIN_VENDORS = (
    "open ai", "anthropic ai", "anthropic pbc", "google deepmind", "deepmind", "google ai",
    "google brain", "meta ai", "mistral ai", "x ai corp", "eleuther ai", "stability ai", "laion",
    "cohere ai", "ai21 labs", "big science workshop", "mosaic ml", "together ai", "nous research",
    "lm sys", "zhipu ai", "zhipu", "moonshot ai", "baichuan ai", "01 ai", "minimax ai",
    "tencent ai", "baidu ai", "inflection ai", "adept ai", "aleph alpha",
    "technology innovation institute", "allen institute for ai", "ai2", "salesforce research",
    "microsoft research", "nvidia nemo", "amazon web services ai", "ibm watsonx", "reka ai",
    "upstage ai", "lg ai research", "swiss ai", "theblackcat102", "kaist ai",
)  # fmt: skip

AMBIGUOUS_VENDORS = (
    "anthropic", "google", "alphabet", "microsoft", "meta", "facebook", "amazon", "apple",
    "nvidia", "ibm", "mistral", "cohere", "databricks", "salesforce", "alibaba", "baidu",
    "tencent", "huawei", "xiaomi", "samsung", "naver", "yandex", "xai", "x ai", "perplexity",
    "stanford", "berkeley", "uc berkeley", "tsinghua", "snowflake", "inflection", "adept",
    "moonshot", "minimax", "stepfun", "kuaishou", "damo academy", "hugging face", "alibaba cloud",
    "byte dance", "i flytek", "sense time", "amazon bedrock",
)  # fmt: skip

PLAIN_MODELS_ZH = (
    "通义千问", "千问大模型", "文心一言", "文心大模型", "文心快码", "讯飞星火", "星火大模型",
    "星火认知", "智谱清言", "清言", "混元大模型", "腾讯混元", "盘古大模型", "华为盘古",
    "百川大模型", "百川智能", "紫东太初", "书生浦语", "书生大模型", "日日新大模型", "天工大模型",
    "昆仑天工", "豆包大模型", "豆包ai", "云雀大模型", "月之暗面kimi", "kimi智能助手", "海螺ai",
    "万知", "悟道大模型", "九章大模型", "子曰大模型", "言犀大模型", "腾讯元宝", "夸克ai",
    "阶跃星辰", "跃问", "必应聊天", "微软小冰", "小度助手", "小艺助手",
)  # fmt: skip

AMBIGUOUS_MODELS_ZH = (
    "千问", "通义", "文心", "星火", "混元", "盘古", "百川", "豆包", "云雀", "天工", "悟道",
    "元宝", "书生", "日日新", "子曰", "言犀", "小冰", "小度", "小艺", "克劳德", "海螺", "夸克",
    "太初",
)  # fmt: skip

PLAIN_VENDORS_ZH = (
    "智谱ai", "智谱华章", "月之暗面", "深度求索", "零一万物", "面壁智能", "昆仑万维", "稀宇科技",
    "智源研究院", "幻方量化", "元象科技", "出门问问",
)  # fmt: skip

AMBIGUOUS_VENDORS_ZH = (
    "百度", "阿里巴巴", "阿里", "腾讯", "华为", "字节", "讯飞", "商汤", "智谱", "谷歌", "微软",
    "苹果", "亚马逊", "脸书", "英伟达", "清华大学", "复旦大学", "上海人工智能实验室", "小米",
    "京东", "网易", "快手", "三六零", "幻方", "美团", "阿里云", "达摩院", "字节跳动", "科大讯飞",
    "商汤科技", "深度思维",
)  # fmt: skip

# Words that may trail a model's name and belong to it.
SUFFIXES = (
    "turbo", "mini", "nano", "pro", "flash", "ultra", "lite", "opus", "sonnet", "haiku",
    "instruct", "chat", "preview", "sft", "rlhf", "dpo", "thinking", "reasoner", "coder",
    "vision", "deduped", "exp", "experimental", "moe", "distill", "instant", "omni", "audio",
    "realtime", "plus", "max", "large", "medium", "small", "base", "hf", "awq", "gptq", "gguf",
    "int4", "int8", "fp8",
)  # fmt: skip

# What a service says instead of an answer; regular expressions over folded lower-case text.
ERROR_PATTERNS = (
    r"error code:? ?\d{3}\b",
    r"http (?:error )?[45]\d\d\b",
    r"(?:error|status)(?: code)?:? [45]\d\d\b",
    r"[45]\d\d (?:bad gateway|service unavailable|too many requests|gateway time-?out)",
    r"(?:internal )?server error",
    r"bad gateway",
    r"gateway time-?out",
    r"service (?:temporarily )?unavailable",
    r"too many requests",
    r"rate limit (?:exceeded|reached)",
    r"you exceeded your current quota",
    r"(?:i'm |i am |we're |we are )?sorry,? (?:but )?(?:an|some) (?:unexpected |internal )?error"
    r" (?:has )?occurred",
    r"an? (?:unexpected|internal|unknown) error (?:has )?occurred",
    r"an error (?:has )?occurred(?: while| during| when|[.!]|$)",
    r"network error(?: due to high traffic)?",
    r"api request error",
    r"request timed? ?out",
    r"connection (?:timed out|refused|reset by peer|aborted|error)",
    r"upstream connect error",
    r"traceback \(most recent call last\)",
    r"cuda out of memory",
    r"cuda error:",
    r"(?:this model's )?maximum context length (?:is|exceeded)",
    r"context.length.exceeded",
    r"\{\s*\"(?:error|detail)\"\s*:",
    r"<html[^>]*>\s*<head>\s*<title>[45]\d\d",
    r"something went wrong",
    r"there was an error generating a response",
    r"(?:invalid|incorrect) api key",
    r"(?:the |this )?model is (?:currently )?overloaded",
    r"overloaded_error",
    r"(?:null|nan|undefined|\[object object\])$",
    r"服务器?(?:内部)?错误",
    r"内部服务器错误",
    r"网络(?:错误|异常|连接超时)",
    r"请求(?:失败|超时|过于频繁)",
    r"系统(?:繁忙|错误|异常)",
    r"接口(?:调用)?(?:失败|错误|异常)",
    r"服务(?:暂时)?不可用",
    r"错误代码",
    r"(?:很?抱歉|对不起)[,，]?\s*(?:发生|出现)了?(?:未知|内部)?(?:错误|异常)",
    r"生成(?:失败|出错)",
)

# What follows when an answer only speaks about an error.
ERROR_TALK = (
    r"s?[\s\"'`*)]{0,3}(?:means?|is|are|was|errors?|messages?|codes?|indicates?|usually|typically|occurs?"
    r"|happens?|refers?|and|or|vs|in|on|can|may|通常|表示|是|指|意味|的)(?:\b|(?=[\u4e00-\u9fff]))"
)
