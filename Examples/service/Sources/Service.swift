import AssentCore
import AssentEnforcement
import AssentHummingbird
import AssentTransportNIO
import Foundation
import HTTPTypes
import Hummingbird
import Logging

/// A service that takes payments, and protects them by the policies of a server elsewhere. Settings come from the
/// environment; Examples/service/README.md says which.
@main
struct Service {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        func fail(_ what: String) -> Never {
            FileHandle.standardError.write(Data("service: \(what)\n".utf8))
            exit(64)
        }
        func setting(_ name: String) -> String {
            guard let value = environment[name], !value.isEmpty else { fail("set \(name)") }
            return value
        }
        guard let port = Int(setting("SERVICE_PORT")), (1...65_535).contains(port) else {
            fail("SERVICE_PORT is not a port")
        }
        var limits = HTTPLimits.policyServer
        if let text = environment["AM_LIMIT"] {
            guard let seconds = Int64(text), (1...86_400).contains(seconds) else {
                fail("AM_LIMIT is 1 to 86400 seconds")
            }
            let limit = Duration.seconds(seconds)
            limits = HTTPLimits(connect: limit, read: limit, total: limit, replyBytes: limits.replyBytes)
        }
        let logger = Logger(label: "service")
        let server = try PolicyServer(setting("AM_URL"), realm: setting("AM_REALM"))
        let host = try Origin(server.url).host.description
        let roots = environment["AM_AUTHORITY"].map(TrustRoots.pemFile) ?? .system
        let transport = try NIOTransport(
            configuration: .init(trustRoots: roots, pins: [host: .unpinned]), logger: logger)
        let account = ServiceAccount(
            server, journey: setting("AM_JOURNEY"), username: setting("AM_USER"),
            password: Secret(setting("AM_PASSWORD")), transport: transport, limits: limits)
        var policies = PolicyClient(
            server, policySet: setting("AM_POLICY_SET"), credentials: account, transport: transport, logger: logger)
        policies.limits = limits
        let application = Application(
            router: try paymentRouter(policies, origin: setting("SERVICE_ORIGIN"), payments: Payments()),
            configuration: .init(address: .hostname("127.0.0.1", port: port)),
            logger: logger)
        try await application.runService()
        await transport.shutdown()
    }
}

/// A payment that a user has approved.
struct Payment: ResponseEncodable, Sendable {
    let id: String
    let payer: String
    let to: String
    let amount: String
    let currency: String
}

/// What was paid, by the transaction that approved it: a payment is made once, whatever comes twice.
actor Payments {
    private(set) var all: [String: Payment] = [:]

    func add(_ payment: Payment) { all[payment.id] = all[payment.id] ?? payment }
}

/// The routes: `POST /payments`, for users whom the policies let pay.
func paymentRouter(
    _ policies: PolicyClient, origin: String, payments: Payments
) throws -> Router<BasicEnforcedContext> {
    struct Order: Decodable {
        let to: String
        let amount: String
        let currency: String
    }

    let router = Router(context: BasicEnforcedContext.self)
    let protected = try PolicyMiddleware<BasicEnforcedContext>(policies, origin: origin, binding: .json)
    router.group("payments").add(middleware: protected).post { request, context in
        let access = try context.allowed()
        // No policy of this service allows a payment without an approval. One that did would be a mistake.
        guard let id = access.transactionID else { throw HTTPError(.forbidden) }
        let order = try await request.decode(as: Order.self, context: context)
        let payment = Payment(
            id: id, payer: access.user.name, to: order.to, amount: order.amount, currency: order.currency)
        await payments.add(payment)
        return EditedResponse(status: .created, response: payment)
    }
    return router
}
