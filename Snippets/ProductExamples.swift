// The examples in the doc comments of the other products: Scripts/check_examples.py compares what stands between the
// marks.
import AssentConfiguration
import AssentCore
import AssentJOSE
import AssentServer
import AssentTesting
import AssentVault
import Foundation
import Logging
import ServiceLifecycle

protocol Notices: Sendable {
    func show(_ text: String, _ advice: String?) async
    func offerRetry() async
}

func report(_ screen: some Notices, pay: () async throws -> Void) async throws {
    // snippet: error begin
    do {
        try await pay()
    } catch let error as any AssentError {
        await screen.show(error.detail, error.suggestion)
        if error.isTransient { await screen.offerRetry() }
    }
    // snippet: error end
}

func members(subject: String, nonce: String?) -> JSONObject {
    // snippet: object begin
    JSONObject(omittingNil: ["sub": .string(subject), "nonce": nonce.map(JSONValue.string)])
    // snippet: object end
}

func accounts(_ json: JSONValue) throws -> Int {
    // snippet: decode begin
    struct Account: Decodable { let id: UInt64, balance: Decimal, openedAt: Date }
    let accounts = try json.decode([Account].self)
    // snippet: decode end
    return accounts.count
}

func accounts(_ reply: HTTPReply) async throws -> Int {
    // snippet: reply begin
    struct Account: Decodable { let id: UInt64, balance: Decimal }
    let accounts = try await reply.json([Account].self)
    // snippet: reply end
    return accounts.count
}

func email(_ claims: JWTClaims) throws -> String? {
    // snippet: claims begin
    struct Person: Decodable { let sub: String, email: String? }
    let person = try claims.decode(Person.self)
    // snippet: claims end
    return person.email
}

func vault(in directory: URL, passphrase: Secret) async throws {
    // snippet: vaultKeys begin
    let vault = try await FileVault.open(directory, keys: .passphrase(Secret("correct horse")))
    // snippet: vaultKeys end
    try await vault.update("profile", to: passphrase, expected: .absent)
}

func stores(_ makeStore: @Sendable () -> any SecretStore) async throws {
    // snippet: storeContract begin
    for rule in SecretStoreContract.rules { try await rule.check(makeStore()) }
    // snippet: storeContract end
}

func providers(_ openProvider: @escaping @Sendable () throws -> any KeyProvider) async throws {
    // snippet: providerContract begin
    for rule in KeyProviderContract.rules { try await rule.check { try openProvider() } }
    // snippet: providerContract end
}

func serve(_ logger: Logger) async throws {
    // snippet: server begin
    let server = try await IdentityServer(configuration: .load(file: "assent.yaml"), logger: logger)
    try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigterm], logger: logger).run()
    // snippet: server end
}

func serveGateway(_ logger: Logger) async throws {
    // snippet: gatewayServer begin
    let gateway = try GatewayServer(configuration: .load(file: "edge.yaml"), logger: logger)
    try await ServiceGroup(services: [gateway], gracefulShutdownSignals: [.sigterm], logger: logger).run()
    // snippet: gatewayServer end
}

func configuration(report: (String) -> Void) throws -> ServerConfiguration? {
    do {
        return try ServerConfiguration.load(file: "assent.yaml")
    } catch let error as ConfigurationError {
        report("\(error)")  // assent.yaml:7: publicURL must be a URL with https
        return nil
    }
}
