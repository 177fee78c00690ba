import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentVault
import HTTPTypes
import Testing

@Suite("Signing device: containers, keys of the server, and what is queued")
struct ContainerTests {
    let scene: Scene
    let device: SigningDevice
    let container: SigningContainer

    init() async throws {
        scene = try Scene()
        device = scene.device()
        container = try await scene.enrolled(device)
    }

    @Test("Containers of several issuers are found by name, issuer and user")
    func filters() async throws {
        let other = try ScriptedServer(issuer: "https://am.example/other")
        let second = SigningDevice(
            store: scene.store, keys: scene.keys, transport: other.transport, clock: scene.clock)
        let enrolment = try await second.enrol(
            SigningInvite(typed: other.code.shown.reveal(), issuer: other.issuer), name: "Second")
        #expect(try await device.containers().count == 2)
        #expect(try await device.containers(matching: .init(name: "Second")).map(\.id) == [enrolment.containerID])
        #expect(try await device.containers(matching: .init(issuer: scene.server.issuer)).map(\.id) == [container.id])
        #expect(try await device.containers(matching: .init(user: "ana")).count == 2)
        #expect(try await device.containers(matching: .init(user: "user-1")).count == 2)
        #expect(try await device.containers(matching: .init(name: "second")).isEmpty)
        await #expect(throws: SigningError(.invalidContainer)) { try await device.container("other") }
    }

    @Test("Name, properties and push address are the server's first, then stored")
    func updates() async throws {
        try await container.rename("Work laptop")
        try await container.setProperties(["colour": "blue"])
        try await container.setPushID("")
        let changed = try await scene.device().container(container.id)
        #expect(changed.name == "Work laptop" && changed.properties == ["colour": "blue"])
        #expect(await scene.server.updates.map(\.name) == ["Work laptop", nil, nil])
        await scene.server.refuse("/device/update", .init(status: 503, code: "unavailable"))
        let error = await #expect(throws: SigningError(.unavailable)) { try await container.rename("Other") }
        #expect(error?.isTransient == true)
        #expect(try await device.container(container.id).name == "Work laptop")
        await #expect(throws: SigningError(.invalidArgument)) { try await container.rename("") }
        await #expect(throws: SigningError(.invalidArgument)) { try await container.setProperties(["": "x"]) }
        await #expect(throws: SigningError(.invalidArgument)) {
            try await container.setProperties(["a": String(repeating: "x", count: 257)])
        }
    }

    @Test(
        "An error document never deletes, locks or replaces anything",
        arguments: [
            "container_revoked", "unknown_container", "container_blocked", "container_suspect", "key_expired",
            "key_retired", "enrolment_void", "bad_proof", "replay", "invalid_request", "something_new",
        ])
    func errors(code: String) async throws {
        let transaction = try await scene.fetched(container, on: device)
        let names = await scene.store.names()
        let keys = await scene.keys.keyNames()
        for path in ["/device/status", "/device/transactions/list", "/device/transactions/fetch", "/device/update"] {
            await scene.server.refuse(path, .init(status: 403, code: code))
        }
        await #expect(throws: SigningError(.init(rawValue: code))) { try await container.status() }
        await #expect(throws: SigningError(.init(rawValue: code))) { try await container.transactionIDs() }
        await #expect(throws: SigningError(.init(rawValue: code))) { try await container.rename("x") }
        #expect(await scene.store.names() == names)
        #expect(await scene.keys.keyNames() == keys)
        #expect(try await device.container(container.id).state == .active)
        #expect(try await transaction.setStatus("deny").effect == .deny)
    }

    @Test(
        "Only a signed status ends a container, and then its keys are gone", arguments: [ContainerState.revoked, .void])
    func ends(state: ContainerState) async throws {
        await scene.server.set(state: state)
        #expect(try await container.status().state == state)
        #expect(try await device.containers().isEmpty)
        #expect(await scene.isEmpty)
    }

    @Test("The signed status of another container counts as none")
    func otherStatus() async throws {
        await scene.server.edit("status") {
            $0["did"] = .string(SigningID(random: SystemRandom()).text)
            $0["state"] = "REVOKED"
        }
        await #expect(throws: SigningError(.serverAuthentication)) { try await container.status() }
        await #expect(throws: SigningError(.serverAuthentication)) { try await container.rename("x") }
        #expect(try await device.containers().count == 1)
    }

    @Test("Old replies, replies of another call, and what is no message at all count as none")
    func replays() async throws {
        let transaction = try await scene.fetched(container, on: device)
        _ = try await container.transactionIDs()
        try await container.rename("Other")
        let paths = [
            "/device/status", "/device/transactions/list", "/device/transactions/fetch", "/device/update",
            "/device/provision/start", "/device/provision/commit", "/device/provision/complete",
        ]
        var old: [String] = ["", "{}", "null", "a.b.c", "a.b.c.d.e", String(repeating: "A", count: 100_000)]
        for path in paths { old.append(try #require(await scene.server.sent[path]?.last)) }
        let names = await scene.store.names()
        for reply in old {
            for path in [
                "/device/status", "/device/transactions/list", "/device/update", "/device/transactions/decide",
            ] {
                await scene.server.replay(path, reply)
            }
            await #expect(throws: SigningError(.serverAuthentication)) { try await container.status() }
            await #expect(throws: SigningError(.serverAuthentication)) { try await container.transactionIDs() }
            await #expect(throws: SigningError(.serverAuthentication)) { try await container.rename("x") }
            await #expect(throws: SigningError(.serverAuthentication)) { try await transaction.setStatus("deny") }
        }
        #expect(await scene.store.names().count == names.count + 1)
        #expect(try await device.container(container.id).name == "Other")
        await scene.server.replay("/device/transactions/decide", nil)
        #expect(try await transaction.setStatus("deny").effect == .deny)
    }

    @Test("Blocked and suspect containers stay", arguments: [ContainerState.blocked, .suspect])
    func stays(state: ContainerState) async throws {
        await scene.server.set(state: state)
        #expect(try await container.status().state == state)
        #expect(try await device.container(container.id).state == state)
        #expect(await scene.keys.keyNames().count == 3)
    }

    @Test("Deleted at once: the keys are gone, and the server knows")
    func deleted() async throws {
        #expect(try await container.delete(reason: "sold"))
        #expect(await scene.server.state == .revoked)
        #expect(await scene.isEmpty)
    }

    @Test("Deleted offline: hidden at once, told at every start until the server has signed that it ended")
    func queued() async throws {
        let offline = Fault(at: 2, after: false)
        let cut = scene.device(offline)
        _ = try? await cut.container(container.id).delete()
        #expect(try await device.containers().isEmpty)
        // Of the keys only the device key is left, which the call needs.
        await scene.server.refuse("/device/delete", .init(status: 404, code: "unknown_container"))
        let next = scene.device()
        await #expect(throws: SigningError(.unknownContainer)) { try await next.sendQueued() }
        #expect(await scene.keys.keyNames().count == 1)
        #expect(await scene.server.state == .active)
        try await scene.device().sendQueued()
        #expect(await scene.server.state == .revoked)
        #expect(await scene.isEmpty)
        await #expect(throws: SigningError(.invalidContainer)) { try await container.status() }
    }

    @Test("A stored decision is sent by the next start, and forgotten when the server refuses it after its end")
    func decisions() async throws {
        let transaction = try await scene.fetched(container, on: device)
        await scene.server.refuse("/device/transactions/decide", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) { try await transaction.setStatus("accept", number: "42") }
        #expect(await scene.server.transactions[0].decision == nil)
        try await scene.device().sendQueued()
        #expect(await scene.server.transactions[0].effect == "approve")
        #expect(await !scene.store.names().contains { $0.hasPrefix("signing.decision.") })

        let late = try await scene.fetched(container, on: device)
        await scene.server.refuse("/device/transactions/decide", .init(status: 410, code: "tx_expired"))
        await #expect(throws: SigningError(.transactionExpired)) { try await late.setStatus("deny") }
        #expect(await scene.store.names().contains { $0.hasPrefix("signing.decision.") })
        await scene.server.set(time: 2000)
        try await container.status()
        await scene.server.refuse("/device/transactions/decide", .init(status: 410, code: "tx_expired"))
        await #expect(throws: SigningError(.transactionExpired)) { try await scene.device().sendQueued() }
        #expect(await !scene.store.names().contains { $0.hasPrefix("signing.decision.") })
        #expect(await scene.server.transactions[1].decision == nil)
        #expect(await !scene.server.asked.contains("/device/transactions/list"))
    }

    @Test("A new online key is found by reading the configuration once; an old one counts no more")
    func onlineKeys() async throws {
        let old = await scene.server.online
        try await scene.server.rotateOnlineKey(withdrawing: true)
        let txn = await scene.server.ask()
        let info = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
        #expect(!info.isVerified)
        #expect(try await info.transaction().id == txn.text)
        #expect(try await device.retrieveTransactionInfo(scene.server.ticket(txn)).isVerified)
        // Somebody has stolen the old key, and answers in the server's name.
        await scene.server.sign("status", with: old)
        await #expect(throws: SigningError(.serverAuthentication)) { try await container.status() }
        await scene.server.edit("configuration") { _ in }
        let restarted = scene.device()
        await #expect(throws: SigningError(.serverAuthentication)) {
            try await restarted.container(container.id).status()
        }
    }

    @Test("A key that was certified again is found by reading the configuration once")
    func certifiedAgain() async throws {
        await scene.server.set(time: 95_000)
        await #expect(throws: SigningError(.serverAuthentication)) { try await container.status() }
        await scene.server.certify(80_000...200_000)
        let before = await scene.server.asked.count
        #expect(try await container.status().state == .active)
        #expect(await scene.server.asked.count == before + 2)
        #expect(try await container.status().state == .active)
        #expect(await scene.server.asked.count == before + 3)
    }

    @Test("A successor of the identity key is pinned; a forged one, and the way back, are refused")
    func identity() async throws {
        let before = await scene.server.identity
        try await scene.server.rotateIdentity()
        try await scene.server.rotateOnlineKey(withdrawing: false)
        #expect(try await scene.device().container(container.id).status().state == .active)
        try await scene.server.rotateIdentity()
        try await scene.server.rotateOnlineKey(withdrawing: false)
        #expect(try await scene.device().container(container.id).status().state == .active)
        // The old key, which a thief may have, is not an identity any more.
        await scene.server.edit("configuration") { object in
            object["identity"] = (try? ProtocolKey(before).json) ?? nil
        }
        await #expect(throws: SigningError(.untrustedIdentity)) {
            try await scene.device().container(container.id).status()
        }
        await scene.server.edit("configuration", nil)
        try await scene.server.rotateIdentity(forged: true)
        await #expect(throws: SigningError(.untrustedIdentity)) {
            try await scene.device().container(container.id).status()
        }
        #expect(try await scene.device().containers().count == 1)
    }

    /// Does something between the first answer to `GET configuration` and its arrival.
    private struct SlowConfiguration: HTTPTransport {
        let base: any HTTPTransport
        let isFirst = Locked(true)
        let meanwhile: @Sendable () async throws -> Void

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let reply = try await base.send(call)
            guard call.request.path?.hasSuffix("/configuration") == true,
                isFirst.withLock({ first in
                    defer { first = false }
                    return first
                })
            else { return reply }
            try await meanwhile()
            return reply
        }
    }

    /// The identity key that the store pins.
    private func pinned() async throws -> JSONValue? {
        for name in await scene.store.names() where name.hasPrefix("signing.container.") {
            guard let stored = try await scene.store.value(name) else { continue }
            return try JSONValue.parse(stored.value.revealBytes())["identity"]
        }
        return nil
    }

    @Test("A configuration that arrives late does not take the pinned identity key back")
    func lateConfiguration() async throws {
        let (scene, id) = (scene, container.id)
        let transport = SlowConfiguration(base: scene.server.transport) {
            try await scene.server.rotateIdentity()
            try await scene.device().container(id).status()
        }
        let slow = SigningDevice(store: scene.store, keys: scene.keys, transport: transport, clock: scene.clock)
        try await slow.container(id).status()
        #expect(try await pinned() == ProtocolKey(scene.server.identity).json)
    }

    @Test("Nothing secret is in an error, a description or a name of the store")
    func secrets() async throws {
        let code = scene.server.code.canonical.reveal()
        for name in await scene.store.names() { #expect(!name.contains(code)) }
        #expect(!"\(container)".contains(code))
        let name = try #require(await scene.store.names().first)
        let record = try await scene.store.value(name)
        #expect(record != nil && !"\(String(describing: record))".contains(code))
    }
}
