import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("Calls that wait until the vault was read") struct SettledCallTests {
    enum Way: CaseIterable {
        case plain, asking, download
    }

    private let sent = Locked(0)

    /// The calls of a client whose vault is read while somebody signs in.
    private func calls() async throws -> ResourceCalls {
        let clock = ManualClock()
        let transport = InMemoryTransport { [sent] _ in
            sent.withLock { $0 += 1 }
            return .json(200, [:])
        }
        let tokens = TokenManager(
            configuration: try TokenConfiguration(
                issuer: "\(am)/oauth2", clientID: "app", redirectURI: "app:/cb", scopes: ["accounts"]),
            transport: transport, store: MemorySecretStore(clock: clock), clock: clock, random: SeededRandom(seed: 1))
        try await tokens.install(Session(token: Secret("ANA")))
        let isSettled = Locked(false)
        var settings = try AuthorizationConfiguration(resources: [api: .session])
        settings.settled = { isSettled.withLock { $0 } }
        settings.settle = { _ in
            let isFirst = isSettled.withLock { isSettled -> Bool in
                defer { isSettled = true }
                return !isSettled
            }
            if isFirst { try await tokens.install(Session(token: Secret("BOB"))) }
        }
        let client = try AuthorizedClient(
            configuration: settings,
            journeys: JourneyClient(
                configuration: try JourneyConfiguration(server: am), transport: transport, clock: clock),
            source: tokens, transport: transport, clock: clock, random: SeededRandom(seed: 2))
        return ResourceCalls(
            .user, client: client, base: nil, sessionField: WireName.sessionCookie, random: SeededRandom(seed: 3),
            examine: { nil })
    }

    @Test(
        "One that waits while somebody signs in is not sent in that one's name, however it is made",
        arguments: Way.allCases)
    func waiting(way: Way) async throws {
        let calls = try await calls()
        let request = ResourceRequest.get("\(api)/accounts")
        let place = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        let error = await #expect(throws: ResourceError.self) {
            switch way {
            case .plain: _ = try await calls.send(request)
            case .asking: _ = try await calls.send(request) { _ in .decline }
            case .download:
                _ = try await calls.send(
                    request.download(to: place.path), progress: { _ in }, approve: { _ in .decline })
            }
        }
        #expect(error?.code == .actionCancelled)
        #expect(sent.withLock { $0 } == 0)
        #expect(try await calls.send(request).status == 200)
        #expect(sent.withLock { $0 } == 1)
    }
}
