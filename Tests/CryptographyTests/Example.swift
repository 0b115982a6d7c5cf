import Cryptography

/// A key, a message and a signature made by the `openssl` program: `openssl dgst -sha256 -sign`.
enum Example {
  static let message = Array("a message".utf8)

  static let modulus = bytes(
    "vrp9zCsDZOhZC3HHDe3nzFqlNEJ4yHKMeSBLVLF2k1vkatoptqPUMhcNAheANeectRseMbVmEU6QE-"
      + "q8iuyQFh1kp5GPpTNYliBx4OnTLou1Vn9WqY1IZJA3dGGmiZXXS1zs2yZLphZ_7cb7284uhXME7xD_yYLTcK0toLF3hcbGpCVI84"
      + "x_2WcAK2Se_tYDlfJmvDT2o7vnazY5jjXQ2UHpmKyBQqRR6A6GboasPhLH_QEI3KufU2YmHpCEVDayMbLdqwErSrsa0hlQy0pCcq"
      + "ph3thLPqaFYcP0VcF7pYOfNbT9tAFkw0CuynO2-Pf8_Mjs1Mn38VeXrVMP5RiQNw")

  static let signature = bytes(
    "LpL_4B-xdbiqqAx0-"
      + "ik3tzi_MlPUJ7dIjqnfMquzoAIu01kI6VqwKNZ02jLAJuxQKv2YktAn5K_X6zXyWZRo1qcSVpKR4BR1Ywf9Llm9rNnz97CuWdBxr"
      + "Qqocdplnq_4mhJvLa52qT-sCeJzQdBKccP07V2iR7l1kSSDalDnpp7_citoDh0BlF37Gh26KILCK6x5aX9tPK0fH7CnLd-"
      + "58cyHBJSS4EssEOhhvlgtK8kbZVk_yVo2prgB3pMUKUaLmiTpyGlpyf8NFxdMDQVCDFmTx1OGI0lg1369dLuQufMjkZgFbooKLvK"
      + "CNokbP71ub20GeGngSp2cqaFUxwckWg")

  private static func bytes(_ text: String) -> [UInt8] { Base64URL.decode(text) ?? [] }
}
