import AssentCore
import AssentVault
import Foundation
import HTTPTypes

/// Fails at one moment: the nth write or call, before or after it had its effect. After that nothing works any more, as
/// if the process had ended.
final class Fault: Sendable {
    struct Crash: Error {}

    private let state: Locked<(left: Int, hasCrashed: Bool)>
    let isAfter: Bool

    init(at moment: Int, after isAfter: Bool) {
        state = Locked((moment, false))
        self.isAfter = isAfter
    }

    static var never: Fault { Fault(at: .max, after: false) }

    var hasHappened: Bool { state.withLock { $0.hasCrashed } }

    /// Around one effect.
    func around<Result>(_ effect: () async throws -> Result) async throws -> Result {
        let isNow = try state.withLock { state in
            if state.hasCrashed { throw Crash() }
            state.left -= 1
            if state.left < 0 { state.hasCrashed = true }
            return state.left < 0
        }
        guard isNow else { return try await effect() }
        if isAfter { _ = try await effect() }
        throw Crash()
    }
}

/// A store whose writes may fail.
struct FaultyStore: SecretStore {
    let base: any SecretStore
    let fault: Fault

    func value(_ name: String) async throws -> StoredSecret? { try await base.value(name) }

    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        try await fault.around { try await base.update(name, to: value, expected: expected) }
    }

    func names() async throws -> [String] { try await base.names() }

    func removeAll() async throws { try await base.removeAll() }

    func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await base.lease(name, deadline: deadline)
    }
}

/// A transport whose calls may fail, before or after the server has acted.
struct FaultyTransport: HTTPTransport {
    let base: any HTTPTransport
    let fault: Fault

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        try await fault.around { try await base.send(call) }
    }
}
