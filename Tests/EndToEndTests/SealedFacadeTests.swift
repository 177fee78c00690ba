import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentDemo

/// Everything sealed inside of TLS, by the façade alone, over the real transport, server and gateway.
@Suite("The façade with payload encryption")
struct SealedFacadeTests {
    /// The app of the story, sealed.
    private func app(
        _ story: Story, _ vault: String, keys: [Assent.PayloadEncryption.Key],
        traces: Locked<[PayloadTrace]> = Locked([])
    ) throws -> Assent {
        try story.makeAssent(vault: vault) { configuration, _ in
            configuration.resourceBase = story.gateway
            configuration.payloadTrace = { trace in traces.withLock { $0.append(trace) } }
            try configuration.seal(story, with: keys)
        }
    }

    @Test("3: A sign-in, a payment with its approval, 1 MiB both ways and a sign-out go sealed, and nothing else")
    func user() async throws {
        let wire = SealedWire()
        try await EchoService.run { echo in
            try await World.run(
                logger: CollectingLog().logger, watching: wire.watching, editing: echo.routed
            ) { story in
                let keyring = try await PayloadKeyring(story)
                // The control: what is not sealed is seen.
                #expect(!wire.isSealed && wire.sent.contains { $0.path?.contains("/authenticate") == true })
                let keys = [try await keyring.add(), try await keyring.add()]
                wire.clear()

                let traces = Locked<[PayloadTrace]>([])
                let assent = try app(story, "sealed", keys: keys, traces: traces)
                try await story.signIn(assent, forcing: false)
                #expect(try await assent.user()?.userInfo().sub != nil)
                #expect(try await story.balance(assent) == "1000.00")
                let transfer = ResourceRequest.post("transfers", json: Story.transfer)
                let paid = try await assent.userClient.sendAuthenticatedRequest(transfer) { try story.answer(&$0) }
                #expect(paid.status == 201)
                #expect(try await story.balance(assent) == "800.00")
                try await transfers(assent, in: story.world.directory)
                #expect(await assent.signOut().isComplete)

                #expect(wire.isSealed, "\(wire.sent.map { $0.path ?? "" })")
                #expect(wire.handshakes.count == 2 && wire.messages.count >= 10)
                check(traces.withLock { $0 }, messages: wire.messages.count)
                await assent.shutdown()
                await keyring.shutdown()
            }
        }
    }

    private func transfers(_ assent: Assent, in directory: String) async throws {
        let up = try await assent.userClient.sendAuthenticatedRequest(
            ResourceRequest(path: "echo", method: .put, body: HTTPBody(EchoService.content)))
        #expect(up.status == 200 && up.data == EchoService.content)
        let path = directory + "/echo"
        let down = try await assent.userClient.sendAuthenticatedRequest(
            ResourceRequest.get("echo").download(to: path), progress: { _ in }, approve: { _ in .decline })
        #expect(down.status == 200)
        #expect(FileManager.default.contents(atPath: path).map { Array($0) } == EchoService.content)
    }

    /// Each message has its reply, numbers of a session count from 1, and lengths are padded ones.
    private func check(_ traces: [PayloadTrace], messages: Int) {
        let (requests, replies) = (traces.filter { $0.kind == .request }, traces.filter { $0.kind == .reply })
        #expect(requests.count == messages)
        for (_, sent) in Dictionary(grouping: requests, by: \.origin) {
            #expect(sent.compactMap(\.number).sorted() == (1...UInt64(sent.count)).map { $0 })
        }
        // A reply is told when all of it was read.
        #expect(!replies.isEmpty && replies.count <= requests.count)
        // 41 bytes of head and 21 for each chunk: what is left of a small message is 256 bytes times a power of two.
        for length in requests.compactMap(\.length) where length < 65_536 {
            let padded = length - 41 - 21
            #expect(padded >= 256 && padded & (padded - 1) == 0, "\(length)")
        }
    }

    @Test("3: An installation seals in its own name, with a proof for each session, until its registration ends")
    func device() async throws {
        let wire = SealedWire()
        try await World.run(logger: CollectingLog().logger, watching: wire.watching) { story in
            let keyring = try await PayloadKeyring(story)
            let keys = [try await keyring.add(), try await keyring.add()]
            let token = try await keyring.initialAccessToken()
            wire.clear()
            let assent = try story.makeAssent(vault: "device") { configuration, provider in
                configuration.client.id = InstallationScene.app
                configuration.resources = [story.gateway: .accessToken(of: [.user, .device])]
                configuration.resourceBase = story.gateway
                configuration.registration = RegistrationConfiguration(keys: provider, initialAccessToken: token)
                configuration.registration?.deviceScopes = ["app-data"]
                configuration.dpop = .installation
                try configuration.seal(story, with: keys, as: .device)
            }
            try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
            #expect(try await assent.deviceClient.sendRequest(.get("app-info")).status == 200)
            try await story.signIn(assent, forcing: false)
            #expect(try await story.balance(assent) == "1000.00")

            #expect(wire.isSealed, "\(wire.sent.map { $0.path ?? "" })")
            // The first registers, as an app. The others are the installation's, each with a proof of its own.
            let proofs = wire.handshakes.map { $0.headerFields[.dpop] }
            #expect(proofs.first == .some(nil))
            let own = proofs.compactMap(\.self)
            #expect(own.count >= 2 && Set(own).count == own.count && own.count == proofs.count - 1)
            #expect(try await assent.unregister().isComplete)
            #expect(wire.isSealed)
            await assent.shutdown()
            await keyring.shutdown()
        }
    }

    @Test("A key that is withdrawn ends its sessions: the next key is taken, and without one nothing is sent")
    func withdrawn() async throws {
        let wire = SealedWire()
        try await World.run(logger: CollectingLog().logger, watching: wire.watching) { story in
            let keyring = try await PayloadKeyring(story)
            let keys = [try await keyring.add(), try await keyring.add()]
            let assent = try app(story, "sealed", keys: keys)
            try await story.signIn(assent, forcing: false)
            #expect(try await story.balance(assent) == "1000.00")

            try await keyring.withdraw(keys[0])
            wire.clear()
            // The session is unknown now; the server does not know the first key, and takes the second.
            #expect(try await story.balance(assent) == "1000.00")
            #expect(wire.isSealed && wire.handshakes.count == 2 && wire.messages.count == 2)

            let old = try app(story, "old", keys: [keys[0]])
            wire.clear()
            let refused = await #expect(throws: JourneyFailure.self) { try await story.signIn(old, forcing: false) }
            #expect(refused?.transportError?.code == .payloadEncryptionFailed)
            #expect(refused?.transportError?.mayHaveHadEffect == false)
            #expect(wire.isSealed && wire.handshakes.count == 1 && wire.messages.isEmpty)
            for app in [assent, old] { await app.shutdown() }
            await keyring.shutdown()
        }
    }
}
