public import ArgumentParser
import Assent
public import AssentSigning
import AssentSigningProtocol

extension PasswordSlot: ExpressibleByArgument {}

/// What is done to a container at the server.
enum ContainerAction: String, ExpressibleByArgument, CaseIterable {
    case block, unblock, revoke, lock, unlock, wipe

    /// Whether it is about a PIN.
    var isAboutSlot: Bool { self == .lock || self == .unlock || self == .wipe }

    /// What a person is told afterwards. The state is the container's, as the server has named it.
    func sentence(_ state: String) -> String {
        switch self {
        case .block, .unblock, .revoke: "Done. The container is \(DisplayText.escapedForTerminal(state))."
        case .lock: "Done. The PIN is locked."
        case .unlock: "Done. The PIN may be tried again."
        case .wipe: "Done. The keys that the PIN opens are destroyed."
        }
    }
}

extension SessionCalls {
    /// Has the server change a container, and says so.
    ///
    /// - Throws: `ExitCode`, after the reason was written.
    func change(container id: String, _ action: ContainerAction, slot: PasswordSlot?) async throws {
        let slot = action.isAboutSlot ? slot ?? .signing : nil
        let body = JSONValue(omittingNil: [
            "action": .string(action.rawValue), "slot": slot.map { .string($0.rawValue) },
        ])
        let path = IssuerPath.container.path(PercentEncoding.encode(id))
        let answer = try await send { .post("\($0("signing"))\(path)", json: body) }
        console.report(answer, action.sentence(answer["state"]?.string ?? ""))
        try console.finish()
    }
}
