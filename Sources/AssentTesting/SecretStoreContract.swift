public import AssentCore
import Foundation

/// What every ``/AssentCore/SecretStore`` must do, as rules that run in any test framework.
///
/// ```swift
/// for rule in SecretStoreContract.rules { try await rule.check(makeStore()) }
/// ```
public enum SecretStoreContract {
    /// One demand on a store.
    public struct Rule: Sendable, CustomStringConvertible {
        /// The demand, as a sentence.
        public let description: String

        private let body: @Sendable (any SecretStore) async throws -> Void

        init(_ description: String, _ body: @escaping @Sendable (any SecretStore) async throws -> Void) {
            self.description = description
            self.body = body
        }

        /// Checks `store`, which must be empty and used by nobody else.
        ///
        /// - Throws: ``SecretStoreContract/Violation``, or what the store threw unexpectedly.
        public func check(_ store: any SecretStore) async throws {
            try await body(store)
        }
    }

    /// A store that does not keep the contract.
    public struct Violation: Error, CustomStringConvertible {
        /// What was expected and what was seen; never a secret.
        public let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// All rules. Each needs a store of its own.
    public static let rules: [Rule] = valueRules + versionRules + boundRules + leaseRules

    private static let valueRules: [Rule] = [
        Rule("A name that was never set has no value") { store in
            try expect(try await store.value("none") == nil, "a value came from nowhere")
            try expect(try await store.names().isEmpty, "an empty store has names")
        },
        Rule("A value comes back as it was set, bytes of every kind") { store in
            for value in [[], [0], Array(UInt8.min...UInt8.max), Array("pässwörd".utf8)] {
                let version = try await store.update("name", to: Secret(bytes: value), expected: .any)
                let stored = try await store.value("name")
                try expect(stored?.value.revealBytes() == value, "\(value.count) bytes came back changed")
                try expect(stored?.version == version, "the version read is not the version that the update returned")
            }
        },
        Rule("A removed value is gone, and the others stay") { store in
            try await store.update("one", to: Secret("1"), expected: .absent)
            try await store.update("two", to: Secret("2"), expected: .absent)
            let version = try await store.update("one", to: nil, expected: .any)
            try expect(version == 0, "a removal returned version \(version)")
            try expect(try await store.value("one") == nil, "the removed value is still there")
            try expect(try await store.value("two")?.value == Secret("2"), "removing one name changed another")
            try expect(try await store.names() == ["two"], "names() lists what was removed")
        },
        Rule("Removing what is not there does nothing") { store in
            try expect(try await store.update("none", to: nil, expected: .any) == 0, "the version is not 0")
            try expect(try await store.update("none", to: nil, expected: .absent) == 0, "the version is not 0")
        },
        Rule("Names are listed sorted, each once") { store in
            for name in ["b", "a", "ä", "c", "b"] {
                try await store.update(name, to: Secret(name), expected: .any)
            }
            try expect(
                try await store.names() == ["a", "b", "c", "ä"].sorted(), "names() is not sorted or not complete")
        },
        Rule("Any text is a name, and nothing in it is a path") { store in
            let names = ["/", "..", "../../etc/passwd", "a/b", "a\\b", "a\0b", "-rf", " ", "👩‍👩‍👧‍👦", "A", "a", ".", "%2e"]
            for name in names { try await store.update(name, to: Secret("of " + name), expected: .absent) }
            for name in names {
                try expect(try await store.value(name)?.value == Secret("of " + name), "a name got another's value")
            }
            try expect(try await store.names().count == names.count, "names() lost or doubled a name")
        },
        Rule("Names that are equal strings are one name") { store in
            try await store.update("caf\u{E9}", to: Secret("1"), expected: .absent)
            try expect(
                try await store.value("cafe\u{301}")?.value == Secret("1"), "the other normal form finds nothing")
            try await store.update("cafe\u{301}", to: nil, expected: .exactly(1))
            try expect(try await store.names().isEmpty, "the name is still listed")
        },
        Rule("removeAll leaves nothing, and the store goes on") { store in
            for name in ["one", "two", "three"] { try await store.update(name, to: Secret(name), expected: .any) }
            try await store.removeAll()
            try expect(try await store.names().isEmpty, "names are left")
            try expect(try await store.value("one") == nil, "a value is left")
            try await store.update("one", to: Secret("again"), expected: .absent)
            try expect(try await store.value("one")?.value == Secret("again"), "nothing can be stored any more")
        },
    ]

    private static let versionRules: [Rule] = [
        Rule("Versions count the updates of a name from 1") { store in
            for expected: UInt64 in 1...3 {
                let version = try await store.update("name", to: Secret("same"), expected: .any)
                try expect(version == expected, "update \(expected) returned version \(version)")
            }
            try expect(try await store.update("other", to: Secret("x"), expected: .any) == 1, "names share a count")
        },
        Rule("An update that expected something else changes nothing") { store in
            try await expectError(.versionMismatch) {
                try await store.update("name", to: Secret("x"), expected: .exactly(1))
            }
            try await store.update("name", to: Secret("1"), expected: .absent)
            try await store.update("name", to: Secret("2"), expected: .exactly(1))
            for expected: ExpectedVersion in [.absent, .exactly(0), .exactly(1), .exactly(3), .exactly(.max)] {
                try await expectError(.versionMismatch) {
                    try await store.update("name", to: Secret("x"), expected: expected)
                }
                try await expectError(.versionMismatch) { try await store.update("name", to: nil, expected: expected) }
            }
            try expect(try await store.value("name")?.value == Secret("2"), "a refused update changed the value")
            try expect(try await store.value("name")?.version == 2, "a refused update changed the version")
        },
        Rule("The version that a removal returned stands for nothing being there") { store in
            try await store.update("name", to: Secret("1"), expected: .any)
            let removed = try await store.update("name", to: nil, expected: .exactly(1))
            try await store.update("name", to: Secret("2"), expected: .exactly(removed))
        },
        Rule("A name made again never has a version that it had before") { store in
            let first = try await store.update("name", to: Secret("1"), expected: .any)
            try await store.update("name", to: nil, expected: .any)
            try await store.update("name", to: Secret("2"), expected: .any)
            try await expectError(.versionMismatch) {
                try await store.update("name", to: Secret("late"), expected: .exactly(first))
            }
            let second = try await store.value("name")?.version ?? 0
            try await store.removeAll()
            try await store.update("name", to: Secret("3"), expected: .any)
            for late in [first, second] {
                try await expectError(.versionMismatch) {
                    try await store.update("name", to: Secret("late"), expected: .exactly(late))
                }
            }
        },
        Rule("Of many updates that expect the same version, one wins") { store in
            try await store.update("name", to: Secret("start"), expected: .absent)
            let wins = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        do {
                            try await store.update("name", to: Secret("\(number)"), expected: .exactly(1))
                            return true
                        } catch let error as SecretStoreError where error.code == .versionMismatch {
                            return false
                        }
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            try expect(wins == 1, "\(wins) of 20 updates won")
            try expect(try await store.value("name")?.version == 2, "the version is not 2")
        },
        Rule("An update in a cancelled task is made nonetheless") { store in
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                return try await store.update("name", to: Secret("x"), expected: .absent)
            }
            task.cancel()
            try expect(try await task.value == 1, "the version is not 1")
            try expect(try await store.value("name")?.value == Secret("x"), "the update was lost")
        },
        Rule("No concurrent update is lost") { store in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask { try await store.update("name \(number % 4)", to: Secret("x"), expected: .any) }
                }
                try await group.waitForAll()
            }
            for number in 0..<4 {
                let version = try await store.value("name \(number)")?.version
                try expect(version == 5, "5 updates gave version \(version ?? 0)")
            }
        },
    ]

    static func expect(_ condition: Bool, _ otherwise: String) throws {
        if !condition { throw Violation(otherwise) }
    }

    static func expectError(
        _ code: SecretStoreError.Code, _ body: () async throws -> some Any
    ) async throws {
        do {
            _ = try await body()
        } catch let error as SecretStoreError {
            try expect(error.code == code, "the error was \(error.code), not \(code)")
            try expect(error.detail.count > 20, "the error \(code) does not say what to do")
            return
        }
        throw Violation("there was no error, though \(code) was due")
    }
}
