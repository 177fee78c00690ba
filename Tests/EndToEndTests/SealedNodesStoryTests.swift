#if PostgreSQL && os(Linux)
import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import StoreTesting
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// Everything sealed by the apps themselves, over real sockets, where each connection reaches another node.
@Suite(
    "The story, sealed, behind HAProxy over two nodes",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct SealedNodesStoryTests {
    private static let page = "https://shop.bank.example/orders"

    @Test("28: Every step of the story comes out as it must with every call of the apps sealed, whichever node has it")
    func wholeStory() async throws {
        let (wire, logger) = (SealedWire(), CollectingLog().logger)
        try await StoryNodes.run(
            logger: logger, configuring: { try $0.rememberUsersOfStory() },
            over: { world, clock in
                // The story loses a reply on a connection that is there already, so connections are kept.
                let ways = try (0..<2).map { _ in try Story.connections(to: world, clock: clock, logger: logger) }
                let keys = try await World.payloadKeys(of: world)
                return wire.sealing(
                    TurnTaking(ways), to: try World.payloadOrigins(of: world), with: keys, clock: clock)
            }
        ) { story, balancer in
            balancer.clear()
            wire.clear()
            try await story.tell()
            story.judgeEvidence()
            #expect(wire.hasSealed(atLeast: 100), "\(wire)")
            #expect(story.narration.failures == [])
            #expect(story.narration.checkCount == 92)
            for listener in StoryBalancer.Listener.allCases {
                let connections = balancer.connections(of: listener)
                #expect(connections.count == 2 && connections.allSatisfy { $0 > 0 }, "\(listener) \(connections)")
            }
        }
    }

    @Test(
        "28: An installation registers, streams, remembers its user and signs out sealed, and both nodes have its calls"
    )
    func installation() async throws {
        let wire = SealedWire()
        try await EchoService.run { echo in
            try await StoryNodes.run(
                logger: CollectingLog().logger, editing: { Self.withLinks(echo.routed($0)) },
                configuring: { try $0.rememberUsersOfStory() },
                over: { world, clock in wire.watching(try StoryNodes.eachAlone(world, clock)) }
            ) { story, balancer in
                let keyring = try await PayloadKeyring(story)
                let keys = [try await keyring.add(), try await keyring.add()]
                let token = try await keyring.initialAccessToken()
                // From here on only this installation sends anything.
                wire.clear()
                balancer.clear()
                let assent = try app(story, keys: keys, token: token)
                let instance = try #require(try await assent.registration?.register())
                #expect(instance.clientID.hasPrefix(InstallationScene.app + "~"))
                try await callWithoutUser(assent)
                try await story.signIn(assent, forcing: false)
                try await callForUser(assent, story)
                let link = try await assent.userClient.webLink(to: Self.page)
                try await remember(assent)
                #expect(try await assent.unregister().isComplete)

                #expect(wire.isSealed, "\(wire)")
                #expect(wire.handshakes.count >= 3 && wire.messages.count >= 20, "\(wire)")
                expectBothNodes(balancer, calls: wire.sent.count)
                // Its session ended with the sign-out.
                #expect(try await statuses(of: link, story, count: 1) == [410])
                await assent.shutdown()
                await keyring.shutdown()
            }
        }
    }

    @Test("41: A link that was asked for sealed at one node signs one browser in, and is used up at both")
    func webLink() async throws {
        let wire = SealedWire()
        try await StoryNodes.run(
            logger: CollectingLog().logger, editing: Self.withLinks,
            over: { world, clock in wire.watching(try StoryNodes.eachAlone(world, clock)) }
        ) { story, balancer in
            let keyring = try await PayloadKeyring(story)
            let keys = [try await keyring.add(), try await keyring.add()]
            let assent = try app(story, keys: keys, token: try await keyring.initialAccessToken())
            try await story.signIn(assent, forcing: false)
            wire.clear()
            let links = [
                try await assent.userClient.webLink(to: Self.page), try await assent.userClient.webLink(to: Self.page),
            ]
            #expect(wire.isSealed, "\(wire)")
            for link in links {
                balancer.clear()
                // Each form goes to the other node.
                #expect(try await statuses(of: link, story, count: 4) == [303, 410, 410, 410])
                #expect(balancer.connections(of: .server).allSatisfy { $0 > 0 })
            }
            await assent.shutdown()
            await keyring.shutdown()
        }
    }

    // MARK: - The app

    /// The example's file, whose app may sign browsers in.
    private static func withLinks(_ file: String) -> String {
        file.replacing(
            "        registration: token\n", with: "        registration: token\n        webLinks: [\"\(page)\"]\n")
    }

    /// An installation that registers, and seals in its own name.
    private func app(_ story: Story, keys: [Assent.PayloadEncryption.Key], token: Secret) throws -> Assent {
        try story.makeAssent(vault: "nodes") { configuration, provider in
            configuration.client.id = InstallationScene.app
            configuration.resourceBase = story.gateway
            configuration.resources[story.gateway] = .accessToken(of: [.user, .implicit, .device])
            configuration.resources[try Origin(configuration.server).description] = .session
            configuration.registration = RegistrationConfiguration(keys: provider, initialAccessToken: token)
            configuration.registration?.deviceScopes = ["app-data"]
            configuration.dpop = .installation
            let place = URL(fileURLWithPath: "\(story.world.directory)/nodes.device")
            configuration.deviceKeys = SoftwareKeyProvider(unprotectedFile: place, clock: story.clock)
            configuration.device.modes = [.device, .assisted]
            try configuration.seal(story, with: keys, as: .device)
        }
    }

    // MARK: - The steps

    private func callWithoutUser(_ assent: Assent) async throws {
        #expect(try await assent.deviceClient.sendUnauthenticatedRequest(.get("status")).status == 200)
        #expect(try await assent.deviceClient.sendUnauthenticatedRequest(.get("app-info")).status == 401)
        try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
        #expect(try await assent.deviceClient.sendRequest(.get("app-info")).status == 200)
    }

    /// Calls of the user, with a payment, a refresh, and 1 MiB both ways.
    private func callForUser(_ assent: Assent, _ story: Story) async throws {
        let tokens = try await assent.tokens.tokens()
        let renewed = try await assent.tokens.tokens(rejecting: tokens.accessToken)
        #expect(renewed.accessToken != tokens.accessToken)
        let transfer = ResourceRequest.post("transfers", json: Story.transfer)
        let paid = try await assent.userClient.sendAuthenticatedRequest(transfer) { try story.answer(&$0) }
        #expect(paid.status == 201)
        #expect(try await story.balance(assent) == "800.00")
        let up = try await assent.userClient.sendAuthenticatedRequest(
            ResourceRequest(path: "echo", method: .put, body: HTTPBody(EchoService.content)))
        #expect(up.status == 200 && up.data == EchoService.content)
        let path = story.world.directory + "/echo"
        let down = try await assent.userClient.sendAuthenticatedRequest(
            ResourceRequest.get("echo").download(to: path), progress: { _ in }, approve: { _ in .decline })
        #expect(down.status == 200)
        #expect(FileManager.default.contents(atPath: path).map { Array($0) } == EchoService.content)
    }

    /// The installation remembers its user: by a PIN, right and wrong, and without one.
    private func remember(_ assent: Assent) async throws {
        let container = try await assent.device.enrol { _ in RememberedScene.pin }
        #expect(await assent.signOut().isComplete)
        let wrong = await #expect(throws: ResourceError.self) {
            try await assent.logIn(container.userName, pin: Secret("9999"))
        }
        #expect(wrong?.number == 9009 && wrong?.triesLeft == 4)
        try await assent.logIn(container.userName, pin: RememberedScene.pin)
        #expect(try await assent.userClient.sendAuthenticatedRequest(.get("accounts")).status == 200)
        _ = await assent.signOut()
        #expect(try await assent.user() == nil)
        try await assent.userClient.implicitlyAuthenticate(container.userName, scopes: ["profile"])
        #expect(try await assent.userClient.sendImplicitRequest(.get("greeting")).status == 200)
        #expect(try await assent.userClient.sendImplicitRequest(.get("accounts")).status == 403)
    }

    /// Each call had a connection of its own, and each node had at least a third of them.
    private func expectBothNodes(_ balancer: StoryBalancer, calls: Int) {
        var all = 0
        for listener in StoryBalancer.Listener.allCases {
            let connections = balancer.connections(of: listener)
            let sum = connections.reduce(0, +)
            #expect(sum > 0 && connections.allSatisfy { 3 * $0 >= sum }, "\(listener) \(connections)")
            all += sum
        }
        #expect(all >= calls, "\(all) connections, \(calls) calls")
    }

    /// What a browser is told that sends the form of a link's page so often, by a connection of its own each time.
    private func statuses(of link: WebLink, _ story: Story, count: Int) async throws -> [Int] {
        let browser = try StoryNodes.eachAlone(story.world, story.clock)
        let origin = try Origin(story.world.endpoints.server)
        let id = try #require(link.url.split(separator: "=").last)
        var request = HTTPRequest(method: .post, scheme: "https", authority: origin.authority, path: "/am/UI/Link")
        request.headerFields[.contentType] = "application/x-www-form-urlencoded"
        request.headerFields[try #require(HTTPField.Name("Origin"))] = origin.description
        var statuses: [Int] = []
        for _ in 0..<count {
            let reply = try await browser.send(HTTPCall(request, body: HTTPBody(Array("id=\(id)".utf8))))
            _ = try await reply.body.collect(upTo: 1 << 16)
            statuses.append(reply.status)
        }
        await browser.shutdown()
        return statuses
    }
}
#endif
