public import AssentCore
import Foundation

/// What every ``/AssentCore/KeyProvider`` must do, as rules that run in any test framework.
///
/// ```swift
/// for rule in KeyProviderContract.rules { try await rule.check { try openProvider() } }
/// ```
///
/// The rules make and remove keys whose names begin with `contract-`. They use nothing but a few keys at a time, so
/// that small tokens can be tested too.
public enum KeyProviderContract {
    /// One demand on a provider.
    public struct Rule: Sendable, CustomStringConvertible {
        /// The demand, as a sentence.
        public let description: String

        private let body: @Sendable (_ open: Opener) async throws -> Void

        init(_ description: String, _ body: @escaping @Sendable (_ open: Opener) async throws -> Void) {
            self.description = description
            self.body = body
        }

        /// Checks providers that `open` returns. Each call of it opens the same place anew, as another process would;
        /// the place has no key whose name begins with `contract-`.
        ///
        /// - Throws: ``KeyProviderContract/Violation``, or what the provider threw unexpectedly.
        public func check(_ open: @escaping @Sendable () async throws -> any KeyProvider) async throws {
            try await body(Opener(open: open))
        }
    }

    /// Opens the place under test.
    struct Opener: Sendable {
        let open: @Sendable () async throws -> any KeyProvider

        func callAsFunction() async throws -> any KeyProvider { try await open() }
    }

    /// A provider that does not keep the contract.
    public struct Violation: Error, CustomStringConvertible {
        /// What was expected and what was seen; never a secret.
        public let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// All rules. Each needs a place of its own, or one from which the rule before has removed its keys.
    public static let rules: [Rule] = placeRules + signingRules + agreementRules + counterRules

    private static let placeRules: [Rule] = [
        Rule("A provider says what it is and that it is available") { open in
            let provider = try await open()
            try expect(
                (1...32).contains(provider.kind.utf8.count)
                    && provider.kind.utf8.allSatisfy(\.isASCIIVisible),
                "the kind is not 1 to 32 ASCII characters")
            let availability = await provider.availability
            try expect(availability == .available, "it is not available: \(availability)")
            try expect(await provider.isAvailable, "isAvailable says something else than availability")
            try expect(try await open().kind == provider.kind, "the kind changes")
        },
        Rule("A name that was never used has no keys") { open in
            let provider = try await open()
            try expect(try await provider.signingKey(named: "contract-none") == nil, "a signing key came from nowhere")
            try expect(
                try await provider.agreementKey(named: "contract-none") == nil, "an agreement key came from nowhere")
            try expect(try await !provider.keyNames().contains("contract-none"), "the name is listed")
            try await provider.removeKey(named: "contract-none")
        },
        Rule("Only names of 1 to 64 plain characters are accepted") { open in
            let provider = try await open()
            let longest = "contract-" + String(repeating: "n", count: 55)
            _ = try await provider.makeSigningKey(named: longest, algorithm: .es256)
            try expect(try await provider.signingKey(named: longest) != nil, "the longest name was lost")
            try await provider.removeKey(named: longest)
            for name in [
                "", longest + "n", "contract/..", "contract name", "contract-ä", "contract\0", "a%2e", "a;b=c",
            ] {
                try await expectError(.invalidInput) { try await provider.signingKey(named: name) }
                try await expectError(.invalidInput) { try await provider.agreementKey(named: name) }
                try await expectError(.invalidInput) {
                    try await provider.makeSigningKey(named: name, algorithm: .es256)
                }
                try await expectError(.invalidInput) { try await provider.makeAgreementKey(named: name) }
                try await expectError(.invalidInput) { try await provider.removeKey(named: name) }
            }
        },
        Rule("Names that differ in case or at their end are different names") { open in
            let provider = try await open()
            let names = ["contract-a", "contract-A", "contract-a.", "contract-", "contract-a-b"]
            var keys: [String: [UInt8]] = [:]
            for name in names {
                keys[name] = try await provider.makeSigningKey(named: name, algorithm: .es256).publicKeyInfo
            }
            try expect(Set(keys.values).count == names.count, "names share a key")
            for name in names {
                try expect(
                    try await provider.signingKey(named: name)?.publicKeyInfo == keys[name], "a name got another's key")
            }
            let ours = try await provider.keyNames().filter { $0.hasPrefix("contract-") }
            try expect(ours == names.sorted(), "keyNames() is not sorted or not complete")
            for name in names { try await provider.removeKey(named: name) }
        },
        Rule("A removed key is gone, also for others, and its name can be used again") { open in
            let provider = try await open()
            let first = try await provider.makeSigningKey(named: "contract-key", algorithm: .es256)
            _ = try await provider.makeAgreementKey(named: "contract-key")
            _ = try await provider.makeSigningKey(named: "contract-other", algorithm: .es256)
            try expect(
                try await provider.keyNames().filter { $0.hasPrefix("contract-") } == [
                    "contract-key", "contract-other",
                ],
                "keyNames() lists a name twice or not at all")
            try await provider.removeKey(named: "contract-key")
            for provider in [provider, try await open()] {
                try expect(
                    try await provider.signingKey(named: "contract-key") == nil, "the signing key is still there")
                try expect(
                    try await provider.agreementKey(named: "contract-key") == nil, "the agreement key is still there")
                try expect(try await provider.signingKey(named: "contract-other") != nil, "another name's key is gone")
            }
            let second = try await provider.makeSigningKey(named: "contract-key", algorithm: .es256)
            try expect(first.publicKeyInfo != second.publicKeyInfo, "the removed key came back")
            try await provider.removeKey(named: "contract-key")
            try await provider.removeKey(named: "contract-other")
        },
    ]

    static func expect(_ condition: Bool, _ otherwise: String) throws {
        if !condition { throw Violation(otherwise) }
    }

    static func expectError(_ code: KeyProviderError.Code, _ body: () async throws -> some Any) async throws {
        do {
            _ = try await body()
        } catch let error as KeyProviderError {
            try expect(error.code == code, "the error was \(error.code), not \(code)")
            try expect(error.detail.count > 20, "the error \(code) does not say what to do")
            return
        }
        throw Violation("there was no error, though \(code) was due")
    }
}
