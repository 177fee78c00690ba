import AssentCore
import AssentTesting

/// A network that keeps one call of a device, and delivers it at a later one.
final class Postman: Sendable {
    /// What happens to the call when it is made.
    enum Fate: String, CaseIterable, Sendable {
        /// It does not arrive until it is released.
        case heldBack
        /// It arrives, the answer is lost, and it arrives again.
        case unanswered
        /// It arrives and is answered, and arrives again.
        case repeated
    }

    typealias Delivery = @Sendable () async throws -> HTTPReply

    private struct State {
        var calls = 0
        var kept: Delivery?
    }

    private let (fate, kept, release): (Fate, Int, Int)
    private let state = Locked(State())

    /// Keeps call number `kept`, and delivers it just before call number `release`.
    init(_ fate: Fate = .repeated, keeping kept: Int = .max, until release: Int = .max) {
        (self.fate, self.kept, self.release) = (fate, kept, release)
    }

    /// How many calls were made.
    var calls: Int { state.withLock { $0.calls } }

    func carry(_ deliver: @escaping Delivery) async throws -> HTTPReply {
        let (number, isReleased) = state.withLock { state in
            let number = state.calls
            state.calls += 1
            if number == kept { state.kept = deliver }
            return (number, number == release)
        }
        if isReleased { await self.deliver() }
        guard number == kept, fate != .repeated else { return try await deliver() }
        if fate == .unanswered { _ = try await deliver() }
        throw HTTPTransportError(.connectFailed, "the network is away")
    }

    /// Delivers what is still kept; nobody waits for the answer.
    func deliver() async {
        let kept = state.withLock { state in
            defer { state.kept = nil }
            return state.kept
        }
        _ = try? await kept?()
    }
}
