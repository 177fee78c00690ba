// What docs/migrating-signing.md names, compiled with each build; a test compares the two.
import Assent
import Foundation

// What an app brings along: its screens.
protocol SigningPrompts: Sendable {
    func choose(
        _ displayed: SigningDisplay, _ allowed: [SigningTransaction.Status]
    ) async -> (status: SigningTransaction.Status, number: String?)
    /// Asks for the password of a key; `nil` where it has none.
    func password(of key: SigningContainer.Key?) async -> Secret?
}

/// The workflow of the vendor's page, in its order.
func signTransaction(
    _ payload: JSONObject, store: any SecretStore, keys: any KeyProvider, transport: any HTTPTransport,
    screen: some SigningPrompts
) async throws {
    // 1. The device, with what the app says about connections.
    var configuration = SigningDeviceConfiguration(issuers: ["https://am.bank.example/am/signing/realms/root"])
    configuration.limits.total = .seconds(60)
    configuration.retries = 2
    let device = SigningDevice(store: store, keys: keys, transport: transport, configuration: configuration)
    // 2. The transaction's identifier: of a push message, or of the list.
    guard let transactionID = payload["tds"]?.string else { return }
    // 3. What it says; nothing is sent.
    let info = try await device.retrieveTransactionInfo(transactionID)
    // 4. Ask for the password of the transport key, if it has one.
    let sessionPassword = await screen.password(of: info.protectionKey)
    // 5. Fetch.
    let transaction = try await info.transaction(password: sessionPassword)
    // 6. and 7. Show it, and have the user choose.
    let answer = await screen.choose(transaction.displayed, transaction.allowedStatuses)
    // 8. Sign and send.
    let password = await screen.password(of: transaction.signingKey(for: answer.status.name))
    let receipt = try await transaction.setStatus(answer.status.name, password: password, number: answer.number)
    print(receipt.decidedAt)
}

/// The same through the front door of the SDK.
func signWithFacade(_ payload: JSONObject, assent: Assent, screen: some SigningPrompts) async throws {
    guard let transactionID = payload["tds"]?.string else { return }
    let transaction = try await assent.device.retrieveTransactionInfo(transactionID).transaction()
    let answer = await screen.choose(transaction.displayed, transaction.allowedStatuses)
    try await transaction.setStatus(answer.status.name, number: answer.number)
}

func namesOfContainers(_ device: SigningDevice) async throws {
    let container: SigningContainer = try await device.container(of: "ana")
    print(try await device.containers(matching: ContainerFilter(user: "ana")).count)
    for id in try await container.transactionIDs(wait: 25) {
        do {
            let info: SigningTransactionInfo = try await device.retrieveTransactionInfo(id)
            print(info.container.name, info.expiresAt, info.isVerified, info.isClaim)
            _ = try await info.deny(reason: "Not mine")
            _ = try await info.report()
        } catch let error as SigningError where error.code == .inexplicitContainer {
            // Several users have a container here: the app asks who is meant.
            print(try await device.retrieveTransactionInfo(id, user: error.users.first).container.userName)
        } catch let error as SigningError where error.code == .invalidContainer {
            print(error.suggestion ?? "")
        } catch let error as SigningError {
            print(error.code.hid ?? 0, error.detail, error.remaining ?? 0, error.retryAfter ?? 0)
        }
    }
    for try await transaction in container.transactions() {
        for status in transaction.allowedStatuses where status.effect == .approve {
            print(status.name, status.label, status.effect, status.reason)
        }
        if transaction.isCancelable { try await transaction.cancel(.userCancel) }
        try await transaction.cancel(.notifySuspicious)
        print(transaction.remaining(), transaction.kind, transaction.displayed.fields)
    }
    let key: SigningContainer.Key? = container.keys(usage: .sign, label: "payments").first
    print(key?.id ?? "", container.keys(usage: .transport).count, container.keys(usage: .auth).count)
    try await container.rename("Ana's phone")
    try await container.setProperties(["colour": "blue"])
    try await container.setPushID("token")
    if container.renewableFrom < Date() { try await container.renew(invite: nil, password: nil) }
    print(container.createdAt, container.expiresAt, container.properties, container.serial, container.issuer)
    print(try await container.oneTimeKeys().map(\.kind))
    print(try await container.oneTimeCode(label: "bank", challenge: "12345678").label)
    let receipt = try await container.record("I have read the contract").setStatus("accept")
    print(receipt.compact, receipt.transactionID)
    try await container.delete(reason: "sold")
    _ = try await device.enrol(SigningInvite(scanned: "…"))
    _ = try SigningInvite(
        typed: "ZFECE-ULFQP-OBFTE-PB2BQ", issuer: "https://am.bank.example/am/signing/realms/root/realms/alpha")
    try await device.sendQueued()
}

/// What protects a key, and what happens after wrong passwords.
func policies(_ container: SigningContainer) async throws {
    for key in container.keys {
        guard let slot = key.password, let password = container.password(slot) else { continue }
        print(key.label, key.usage, password.mode, password.rules.minLength, password.lock, password.state)
        print(password.remaining ?? 0, password.spare ?? 0)
        switch password.lock {
        case .local(.none): print("nothing happens")
        case .local(.delay(let seconds, let counter)): print(seconds, counter)
        case .local(.counter(let max)): print(max)
        case .assisted(let lock): print(lock.max, lock.cap, lock.delays)
        }
        try await password.change(from: Secret("271828"), to: Secret("839201"))
    }
}

func connections(trust: TrustRoots, pin: Pin, backup: Pin) throws -> NIOTransport {
    try NIOTransport(
        configuration: NIOTransportConfiguration(
            trustRoots: trust, pins: ["am.bank.example": .pins([pin, backup])]))
}
