// A whole program: an installation calls as nobody, for itself and for its user. `assent demo --keep` runs the server
// and the bank for it, and prints the command that starts it; AssentResources' article FirstResource has the parts.
import Assent
import Foundation

struct Account: Decodable {
    let balance: String
}

func say(_ text: String, end: String = "\n") {
    FileHandle.standardOutput.write(Data((text + end).utf8))
}

func ask(_ question: String, hidden: Bool = false) -> String {
    // A terminal shows what is typed, but not to getpass.
    if hidden, isatty(STDIN_FILENO) == 1, let typed = getpass("\(question): ") { return String(cString: typed) }
    say("\(question): ", end: "")
    return readLine() ?? ""
}

let words = CommandLine.arguments
guard words.count == 7 else {
    say("FirstResource SERVER BANK CA-FILE PIN BACKUP-PIN KEY-FILE: run 'assent demo --keep', which prints them")
    exit(64)
}
let bank = words[2]

func connect(_ token: Secret) throws -> Assent {
    let keys = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: words[6]))
    var configuration = Assent.Configuration(
        server: words[1], realm: "alpha",
        client: .init(
            id: "bank-pay", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "profile", "accounts"]),
        resources: [bank: .accessToken(of: [.user, .device])],
        pins: ["localhost": [try Pin(words[4]), try Pin(words[5])]],
        vault: .memory)  // .file(at:keys:) where the installation is to be the same at the next start
    configuration.resourceBase = bank
    configuration.trustRoots = .pemFile(words[3])
    configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
    configuration.registration?.deviceScopes = ["app-data"]
    return try Assent(configuration)
}

func callForNobody(_ assent: Assent) async throws {
    let status = try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
    say("Nobody asks for the status: \(status.status).")
}

func callForInstallation(_ assent: Assent) async throws {
    try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
    let details = try await assent.deviceClient.sendRequest(.get("app-info"))
    say("The installation asks for the app's data: \(details.status).")
}

func callForUser(_ assent: Assent) async throws {
    try await assent.journey("Login") { step in
        if step.refusal != nil { say("That was not accepted. Try again.") }
        step[NameCallback.self]?.name = ask("Name")
        step[PasswordCallback.self]?.password = ask("Password", hidden: true)
        if step[TextInputCallback.self] != nil { step[TextInputCallback.self]?.text = ask("Code") }
        return .next
    }
    let greeting = ResourceRequest(path: "greeting", method: .get)
    say("The user asks for a greeting: \(try await assent.userClient.sendAuthenticatedRequest(greeting).status).")
    let accounts = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
    let account = try JSONDecoder().decode(Account.self, from: Data(accounts.data))
    say("The balance is \(account.balance).")
}

func pay(_ assent: Assent) async throws {
    let transfer = RequestBuilder()
        .setMethod(.post)
        .setPath("transfers")
        .setParameters(["to": "Bob", "amount": "200.00", "currency": "EUR"])
        .build()
    var told = ""
    let reply = try await assent.userClient.sendAuthenticatedRequest(transfer) { approval in
        if approval.isFirstStep {
            for field in approval.display { say("  \(field.label): \(field.value)") }
            guard ask("Pay this? (yes or no)") == "yes" else { return .decline }
        }
        // The user answers on a device: this says which number to type there. The step comes again until that is done.
        if let text = approval.waiting?.text, text != told {
            say(text)
            told = text
        }
        approval.agree()
        if approval.step.refusal != nil { say("That was not accepted. A code can be used once: wait for the next.") }
        if approval.step[TextInputCallback.self] != nil {
            approval.step[TextInputCallback.self]?.text = ask("The next code")
        }
        return .next
    }
    say(reply.status == 201 ? "Paid." : "Not paid: \(reply.status).")
}

func fail(_ assent: Assent) async {
    do throws(ResourceError) {
        let refused = try await assent.deviceClient.sendRequest(.get("accounts"))
        if let error = refused.error { say("\(error.domain) \(error.number): \(error.detail)") }
        _ = try await assent.deviceClient.sendRequest(.get("https://elsewhere.example/accounts"))
    } catch {
        say("\(error.domain) \(error.number): \(error.detail) \(error.suggestion ?? "")")
    }
}

func run(_ assent: Assent) async throws {
    try await callForNobody(assent)
    try await callForInstallation(assent)
    await fail(assent)
    try await callForUser(assent)
    try await pay(assent)
    try await assent.unregister()
    say("Unregistered.")
}

do {
    let assent = try connect(Secret(ask("Initial access token", hidden: true)))
    do {
        try await run(assent)
    } catch {
        await assent.shutdown()
        throw error
    }
    await assent.shutdown()
} catch let error as any AssentError {
    say("\(error.detail)\(error.suggestion.map { " \($0)" } ?? "") [\(error.code)]")
    exit(1)
}
