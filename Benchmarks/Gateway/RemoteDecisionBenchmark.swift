import AssentCore
import AssentEnforcement
import AssentEngine
import AssentServer
import AssentStore
import AssentTransportNIO
import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOPosix

/// What a gateway elsewhere asks about a plain GET, and its answer, against one bare HTTPS call to the same process and
/// the same decision in this process on the same database: latency on kept connections, one at a time, in blocks that
/// take turns.
struct RemoteDecisionBenchmark: Benchmark {
    static let name = "remote-decision"
    static let summary = "a decision asked over HTTPS against one bare HTTPS call and the decision in process"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let directory = try setting.workspace.directory("remote-decision")
        let secret = Secret(SystemRandom().token())
        let server = try BenchServer(in: directory, edgeSecret: secret)
        defer { server.stop() }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let transport = try server.transport(on: group)
        let policies = try PolicyServer(server.url, realm: ServeGateway.realm)
        let token = try await Self.token(policies, secret, transport)
        let engine = EnforcementClient(policies, credentials: GivenSession(token), transport: transport)
        let local = try await LocalDecision(directory, server)
        let comparison = try await measure(
            server, TimedCaller.decisions(of: engine, session: server.session), local, over: transport)
        try await local.close()
        await transport.shutdown()
        try await group.shutdownGracefully()
        return [comparison]
    }

    private func measure(
        _ server: BenchServer, _ remote: @autoclosure () -> TimedCaller, _ local: LocalDecision,
        over transport: any HTTPTransport
    ) async throws -> Comparison {
        var comparison = Comparison(
            benchmark: Self.name,
            title: "a decision asked over HTTPS / a bare call and the decision in process, latency", unit: "s",
            aim: .atMost(1.3))
        let root = server.url.dropLast("/am".count)
        let bare = try HTTPCall(.get, url: root + "/healthz")
        try await TimedCaller.inTurns(
            setting.callTurns, expecting: "",
            {
                [
                    remote(),
                    TimedCaller { (try await TimedCaller.whole(transport.send(bare)).status, []) },
                    TimedCaller {
                        try await local.decide()
                        return (200, [])
                    },
                ]
            },
            count: { callers in
                comparison.add(
                    subject: callers[0].latency, baseline: callers[1].latency + callers[2].latency,
                    of: setting.callTurns.rounds)
            })
        return comparison
    }

    /// The gateway's own access token.
    private static func token(
        _ server: PolicyServer, _ secret: Secret, _ transport: any HTTPTransport
    ) async throws -> Secret {
        let form = FormItems(["grant_type": "client_credentials", "scope": "enforcement"])
        let pair = "\(ServeGateway.edge.client):\(secret.reveal())"
        let reply = try await TimedCaller.whole(
            transport.send(
                HTTPCall(
                    .post, url: server.tokenEndpoint,
                    headerFields: [
                        .contentType: FormEncoding.mediaType,
                        .authorization: "Basic \(Data(pair.utf8).base64EncodedString())",
                    ], body: HTTPBody(Array(FormEncoding.encode(form).utf8)))))
        guard let token = try JSONValue.parse(reply.body)["access_token"]?.string else {
            throw BenchFailure("no access token for the gateway: status \(reply.status)")
        }
        return Secret(token)
    }
}

extension TimedCaller {
    /// Asks about a user's GET as a gateway does, each time about another request.
    fileprivate static func decisions(of engine: EnforcementClient, session: String) -> TimedCaller {
        let url = ServeGateway.edge.origin + AccountsReply.path
        var credentials = EnforcementQuestion.Credentials(proofURL: url)
        credentials.session = Secret(session)
        var requirement = EnforcementQuestion.Requirement()
        requirement.kinds = [CallerKind.user.rawValue]
        let (presented, required) = (credentials, requirement)
        return TimedCaller {
            let question = EnforcementQuestion(
                policySet: "bank", resource: url, method: "GET", credentials: presented, requirement: required,
                attempt: SystemRandom().token())
            guard case .success(.granted(let grant)) = await engine.decide(question).answer, grant.user?.name == "ana"
            else {
                throw BenchFailure("the engine does not let the request through")
            }
            return (200, [])
        }
    }
}

/// The same decision by an engine in this process, on the server's database.
private struct LocalDecision: Sendable {
    private let access: GatewayAccess
    private let inquiry: GatewayInquiry
    private let database: any SQLDatabase

    init(_ directory: String, _ server: BenchServer) async throws {
        let configuration = try ServerConfiguration.load(file: directory + "/assent.yaml")
        guard let realm = configuration.realms.first else { throw BenchFailure("no realm") }
        let context = try await ServeGateway.context(
            configuration, logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
        let keys = ServerKeys(context)
        let provider = try OAuthProvider(
            context, keys: keys,
            configuration: OAuthProviderConfiguration(
                realm: realm.name, issuer: server.url + "/oauth2/realms/root/realms/alpha", clients: realm.clients))
        database = context.database
        access = GatewayAccess(
            callers: Callers(
                sessions: Sessions(context), providers: [realm.name: provider], proofs: SenderProofs(context)),
            settlement: AccessSettlement(
                context, decisions: PolicyDecisionPoint(policySets: realm.policySets),
                transactions: Transactions(context)), keys: keys)
        var credentials = PresentedCredentials(accessToken: .absent, proof: nil)
        credentials.session = SessionCredential(token: Secret(server.session), carrier: .field)
        inquiry = GatewayInquiry(
            realm: realm.name, policySet: "bank", method: "GET",
            resource: try CanonicalResource(ServeGateway.edge.origin + AccountsReply.path), credentials: credentials,
            accessToken: AccessTokenRequirement(scopes: [], audience: [], includesIssuer: true, kinds: [.user]))
    }

    func decide() async throws {
        let admission = try await access.admit(inquiry)
        guard case .granted(nil) = await access.settle(GatewayRequest(admission)), admission.caller.user != nil else {
            throw BenchFailure("the engine of this process does not let the request through")
        }
    }

    func close() async throws { try await database.close() }
}
