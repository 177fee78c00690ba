#if TPM && os(Linux)
import AssentCore
import Crypto
import Foundation

/// An NV counter of a TPM.
struct TPMCounter: RollbackCounter {
    private let provider: TPMKeyProvider
    private let name: String

    init(_ provider: TPMKeyProvider, _ name: String) {
        self.provider = provider
        self.name = name
    }

    func value() async throws -> UInt64 {
        try await provider.withCounter(name) { tpm, counter in
            guard let counter else { throw Self.lost }
            return try tpm.read(counter)
        }
    }

    func increment() async throws -> UInt64 {
        try await provider.withCounter(name) { tpm, counter in
            guard let counter else { throw Self.lost }
            let before = try tpm.read(counter)
            try tpm.increment(counter)
            let after = try tpm.read(counter)
            guard after > before else { throw TPMFailure.nonsense("a counter that does not grow") }
            return after
        }
    }

    private static let lost = KeyProviderError(
        .keyLost, "The counter is not in the TPM any more: somebody removed it, or cleared the TPM.")
}

/// Where a counter lies: at an index that follows from its name, with a tag that tells two names of one index apart.
///
/// Nothing about it is kept in files, so that nobody who writes files can put another counter in its place.
struct TPMCounterPlace {
    /// The owner's range (TCG Registry of Reserved TPM 2.0 Handles, §2.2.2): `0x01800000` to `0x01BFFFFF`.
    private static let first: UInt32 = 0x0180_0000
    private static let count: UInt32 = 0x0040_0000
    private static let probes: UInt32 = 8

    private let indexes: [UInt32]
    private let tag: [UInt8]

    init(_ name: String) {
        tag = Array(SHA256.hash(data: Data("assent rollback counter \(name)".utf8)))
        let start = tag.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        indexes = (0..<Self.probes).map { Self.first + (start &+ $0) % Self.count }
    }

    func find(in tpm: TPMConnection) throws -> (handle: UInt32, isCounted: Bool)? {
        for index in indexes {
            guard let found = try tpm.counter(index), found.tag == tag else { continue }
            let kind = TPMNumber.nvCounter | TPMNumber.nvAuthRead | TPMNumber.nvAuthWrite | TPMNumber.nvNoDA
            guard found.attributes & ~TPMNumber.nvWritten == kind else {
                throw KeyProviderError(
                    .tampered,
                    "Somebody put something else in this counter's place. See who uses the TPM: tpm2_nvreadpublic.")
            }
            return (found.handle, found.attributes & TPMNumber.nvWritten != 0)
        }
        return nil
    }

    func make(in tpm: TPMConnection) throws {
        for index in indexes where try tpm.counter(index) == nil {
            try tpm.defineCounter(index, tag: tag)
            guard let made = try find(in: tpm) else { throw TPMFailure.nonsense("a counter that is not there") }
            // A counter has no number before it has counted once.
            return try tpm.increment(made.handle)
        }
        throw KeyProviderError(
            .failed, "Other NV indexes of the TPM are in this counter's places. Choose another name.")
    }
}
#endif
