import Assent
import AssentCore
import AssentServer
import HTTPTypes
import Testing

@testable import AssentDemo

/// By the façade alone, over the real transport, TLS and the real gateway.
@Suite("Tasks of calls of each kind")
struct KindTaskTests {
    /// Holds what goes to one path while it is shut.
    private struct Gate: Sendable {
        private let isShut = Locked(false)
        private let arrived = Locked(0)
        let path: String

        var count: Int { arrived.withLock { $0 } }

        func shut(_ value: Bool) { isShut.withLock { $0 = value } }

        func watching(_ transport: any HTTPTransport) -> any HTTPTransport { Held(gate: self, transport: transport) }

        private struct Held: HTTPTransport {
            let gate: Gate
            let transport: any HTTPTransport

            @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
                if URLText.withoutQuery(call.request.path ?? "") == gate.path {
                    gate.arrived.withLock { $0 += 1 }
                    while gate.isShut.withLock({ $0 }) {
                        try Task.checkCancellation()
                        await Task.yield()
                    }
                }
                return try await transport.send(call)
            }
        }
    }

    /// An installation with a token of its own, whose user is signed in, and remembered as well.
    private static func installation(_ story: Story) async throws -> Assent {
        let operating = try story.makeAssent(vault: "operator")
        try await story.signIn(operating, forcing: false)
        let token = try await InstallationScene(story).initialAccessToken(operating)
        await operating.shutdown()
        let assent = try RememberedUserTests.open(story, "tasks", registeringBy: token, deviceScopes: ["app-data"])
        try await story.signIn(assent, forcing: false)
        let container = try await assent.device.enrol { _ in Secret("0042") }
        try await assent.userClient.implicitlyAuthenticate(container.userName, scopes: ["profile"])
        try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
        return assent
    }

    private static func start(
        _ kind: CallKind, _ assent: Assent, _ request: ResourceRequest, _ completion: @escaping ResourceCompletion
    ) -> NetworkTask? {
        switch kind {
        case .user: assent.userClient.sendAuthenticatedRequest(request, completion: completion)
        case .implicit: assent.userClient.sendImplicitRequest(request, completion: completion)
        case .device: assent.deviceClient.sendRequest(request, completion: completion)
        case .nobody: assent.deviceClient.sendUnauthenticatedRequest(request, completion: completion)
        }
    }

    @Test("20, 21, 26 and 42: Of each kind a task stands still, goes on and is told once, or is cancelled")
    func tasks() async throws {
        let gate = Gate(path: "/accounts")
        // The route is a user's alone, so that the others get a response and an error.
        let statuses: [CallKind: Int] = [.user: 200, .implicit: 403, .device: 403, .nobody: 401]
        try await World.run(
            logger: CollectingLog().logger, watching: gate.watching, editing: RequestKindsTests.remembering
        ) { story in
            let assent = try await Self.installation(story)
            let request = ResourceRequest.get(story.gateway + gate.path)
            var names: Set<String> = []
            for kind in CallKind.allCases {
                let told = Locked<[(response: ResourceResponse?, error: ResourceError?)]>([])
                /// A new task, whose call is on its way.
                func begun() async throws -> NetworkTask {
                    let before = gate.count
                    gate.shut(true)
                    let task = Self.start(kind, assent, request) { response, error in
                        told.withLock { $0.append((response, error)) }
                    }
                    while gate.count == before, told.withLock({ $0.isEmpty }) { await Task.yield() }
                    return try #require(task)
                }

                let task = try await begun()
                #expect(task.state == .running && task.response == nil && task.error == nil, "\(kind)")
                task.suspend()
                gate.shut(false)
                for _ in 0..<100 { await Task.yield() }
                let early = told.withLock { $0.count }
                #expect(early == 0 && task.state == .suspended && task.response == nil, "\(kind)")
                task.resume()
                for await _ in task.progress {}
                let ends = told.withLock { $0 }
                let end = ends.first
                #expect(ends.count == 1 && task.state == .completed, "\(kind)")
                #expect(end?.response?.status == statuses[kind] && task.response?.status == statuses[kind], "\(kind)")
                #expect(end?.error?.number == (kind == .user ? nil : 10106) && task.error == end?.error, "\(kind)")

                told.withLock { $0 = [] }
                let other = try await begun()
                other.cancel()
                for await _ in other.progress {}
                gate.shut(false)
                let cancelled = told.withLock { $0 }
                #expect(cancelled.count == 1 && cancelled.first?.error?.number == 9006, "\(kind)")
                #expect(other.state == .cancelled && other.response == nil, "\(kind)")
                #expect([task, other].allSatisfy { $0.request.path == request.path }, "\(kind)")
                names.formUnion([task.identifier, other.identifier])
            }
            #expect(names.count == 2 * CallKind.allCases.count)
            await assent.shutdown()
        }
    }
}
