import Assent
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentDemo
@testable import AssentServer

/// By the façade alone, over the real transport, TLS and the real gateway.
@Suite("An installation whose clock is minutes off")
struct ClockOffsetTests {
    /// The story's clock, some seconds off.
    private struct ShiftedClock: WallClock {
        let clock: DemoClock
        let seconds: TimeInterval

        var now: Date { clock.now.addingTimeInterval(seconds) }

        func sleep(until deadline: Date) async throws {
            try await clock.sleep(until: deadline.addingTimeInterval(-seconds))
        }
    }

    /// Replies of the server say the machine's time, and the server goes by the story's: here they say that.
    private struct Dated: HTTPTransport {
        let transport: any HTTPTransport
        let clock: DemoClock

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            var reply = try await transport.send(call)
            guard reply.response.headerFields[.date] != nil else { return reply }
            reply.response.headerFields[.date] = DateField.text(of: clock.now)
            return reply
        }
    }

    /// Runs `body` in a process of its own, which nobody has told the time.
    private static func process<Result: Sendable>(
        _ configuration: Assent.Configuration, _ body: (Assent) async throws -> Result
    ) async throws -> Result {
        let app = try Assent(configuration)
        let result = try await body(app)
        await app.shutdown()
        return result
    }

    @Test(
        "Ten minutes ahead or behind, plain or sealed, it registers, has each kind of token, calls, and signs out",
        arguments: [600.0, -600], [false, true])
    func minutes(seconds: TimeInterval, isSealed: Bool) async throws {
        try await World.run(logger: CollectingLog().logger, editing: RequestKindsTests.remembering) { story in
            let keyring = try await PayloadKeyring(story)
            let keys = [try await keyring.add(), try await keyring.add()]
            let token = try await keyring.initialAccessToken()
            await keyring.shutdown()
            let usual = try RememberedUserTests.open(
                story, "shifted", registeringBy: token, deviceScopes: ["app-data"])
            await usual.shutdown()
            let clock = ShiftedClock(clock: story.clock, seconds: seconds)
            let wire = SealedWire()
            let connections = try Story.connections(to: story.world, clock: clock, logger: story.logger)
            var shifted = usual.configuration
            shifted.clock = clock
            shifted.transport = Dated(transport: wire.watching(connections), clock: story.clock)
            shifted.resourceBase = story.gateway
            if isSealed { try shifted.seal(story, with: keys, as: .device) }
            let configuration = shifted

            try await Self.process(configuration) { app in
                try await app.deviceClient.authenticateDevice(scopes: ["app-data"])
                #expect(try await app.deviceClient.sendRequest(.get("app-info")).status == 200)
                #expect(try await app.deviceClient.sendUnauthenticatedRequest(.get("status")).status == 200)
            }
            let user = try await Self.process(configuration) { app in
                try await story.signIn(app, forcing: false)
                #expect(try await app.userClient.sendAuthenticatedRequest(.get("accounts")).status == 200)
                return try await app.device.enrol { _ in Secret("0042") }.userName
            }
            try await Self.process(configuration) { app in #expect(await app.signOut().isComplete) }
            try await Self.process(configuration) { app in
                try await app.userClient.implicitlyAuthenticate(user, scopes: ["profile"])
                #expect(try await app.userClient.sendImplicitRequest(.get("greeting")).status == 200)
            }
            try await Self.process(configuration) { app in
                try await app.logIn(user, pin: Secret("0042"))
                #expect(try await app.userClient.sendAuthenticatedRequest(.get("accounts")).status == 200)
                #expect(await app.endLogin())
                #expect(try await app.unregister().isComplete)
            }
            #expect(isSealed == wire.isSealed)
            await connections.shutdown()
        }
    }
}
