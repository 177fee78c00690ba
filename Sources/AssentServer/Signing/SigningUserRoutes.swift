import AssentCore
import AssentEngine
import AssentSigningProtocol
import Hummingbird

/// What users and administrators ask: invites, digits, containers.
struct SigningUserRoutes: Sendable {
    let call: RouteCall<SigningProvider>
    let caller: SigningCaller

    private var provider: SigningProvider { call.provider }

    /// How an invite stands, or its end.
    func invited() async throws -> Response {
        guard call.request.method == .delete else {
            let status = try await provider.invites.status(caller, pid: call.id)
            return .json(
                200,
                JSONValue(omittingNil: [
                    "state": .string(status.state), "did": status.did.map(JSONValue.string),
                    "name": status.name.map(JSONValue.string),
                ]))
        }
        try await provider.invites.withdraw(caller, pid: call.id)
        return Response(status: .noContent)
    }

    /// The digits that a device shows, entered by its user.
    func enterDigits() async throws -> Response {
        let body = try await call.jsonObject()
        try body.allow(["digits"])
        guard let digits = try body.signingText("digits"), digits.utf8.count <= 64 else {
            throw SigningRefusal(.invalidRequest, "digits is missing.")
        }
        let status = try await provider.invites.enter(digits: digits, caller, pid: call.id)
        return .json(200, ["state": .string(status.state)])
    }

    func containers() async throws -> Response {
        let found = try await provider.devices.list(caller, user: try call.request.query("user"))
        let containers = found.map { Self.json($0.container, $0.keys, slots: $0.slots, at: provider.now) }
        return .json(200, ["containers": .array(containers)])
    }

    func invite() async throws -> Response {
        let body = try await call.jsonObject()
        try body.allow(["user", "did"])
        let invite = try await provider.invites.make(
            caller, user: try body.signingText("user"), did: try body.signingText("did"))
        return .json(
            201,
            [
                "pid": .string(invite.pid), "code": .string(invite.code.reveal()), "qr": .string(invite.qr.reveal()),
                "exp": .integer(invite.expiresAt),
            ])
    }

    /// Changes a container, or one of its keys' passwords.
    func change() async throws -> Response {
        let body = try await call.jsonObject()
        try body.allow(["action", "name", "slot"])
        if let action = try body.signingText("action").flatMap(SlotAction.init) {
            guard let slot = try body.signingText("slot"), body["name"] == nil else {
                throw SigningRefusal(.invalidRequest, "slot is missing.")
            }
            let state = try await provider.slots.act(caller, did: call.id, action, on: slot)
            return .json(200, ["state": .string(state.rawValue)])
        }
        guard body["slot"] == nil else { throw SigningRefusal(.invalidRequest, "This action is not about a slot.") }
        let change: ContainerChange
        switch try body.signingText("action") {
        case "block": change = .block
        case "unblock": change = .unblock
        case "revoke": change = .revoke
        case "rename": change = .rename(try body.signingText("name") ?? "")
        default:
            throw SigningRefusal(.invalidRequest, "action is rename, block, unblock, revoke, lock, unlock or wipe.")
        }
        let state = try await provider.devices.change(caller, did: call.id, change)
        return .json(200, ["state": .string(state.rawValue)])
    }

    func changeKeys() async throws -> Response {
        let body = try await call.jsonObject()
        try body.allow(["action"])
        guard let change = try body.signingText("action").flatMap(SigningKeyAdministration.KeyChange.init) else {
            throw SigningRefusal(.invalidRequest, "action is rotateIdentity or withdrawOnline.")
        }
        let keys = try await provider.administration.change(caller, change)
        return .json(200, ["identity": .string(keys.identity), "min": .integer(Int64(keys.minimum))])
    }

    private static func json(
        _ container: SigningContainerRecord, _ keys: [SigningKeyRow], slots: [SlotStatus], at now: Int64
    ) -> JSONValue {
        let keys = keys.map { key -> JSONValue in
            [
                "kid": .string(key.kid.text), "usage": .string(key.usage.rawValue), "label": .string(key.label),
                "state": .string(key.state.rawValue), "since": .integer(key.since),
            ]
        }
        return JSONValue(omittingNil: [
            "did": .string(container.did.text), "name": .string(container.name),
            "serial": .string(container.serial),
            "state": .string(container.state(at: now).rawValue), "created": .integer(container.createdAt),
            "approvals": .integer(container.approvalsFrom), "renew": .integer(container.renewAt),
            "exp": .integer(container.expiresAt), "ended": container.endedAt.map { .integer($0) },
            "keys": .array(keys), "slots": .array(slots.map(\.json)),
        ])
    }
}
