// A whole program: sign in, read the balance, pay with the user's approval. `assent demo --keep` runs the server and
// the bank for it, and prints the command that starts it.
import Assent
import Foundation

struct Account: Decodable {
    let balance: String
}

struct Transfer: Encodable {
    let to: String
    let amount: String
    let currency: String
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
guard words.count == 6 else {
    say("FirstCall SERVER BANK CA-FILE PIN BACKUP-PIN: run 'assent demo --keep', which prints them")
    exit(64)
}
let bank = words[2]

func connect() throws -> Assent {
    var configuration = Assent.Configuration(
        server: words[1], realm: "alpha",
        client: .init(id: "bank-app", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"]),
        resources: [bank: .accessToken],  // no other origin ever gets a credential
        pins: ["localhost": [try Pin(words[4]), try Pin(words[5])]],
        vault: .memory)  // .file(at:keys:) where the user is to stay signed in
    configuration.trustRoots = .pemFile(words[3])
    return try Assent(configuration)
}

func run(_ assent: Assent) async throws {
    try await assent.journey("Login") { step in
        if step.refusal != nil { say("That was not accepted. Try again.") }
        step[NameCallback.self]?.name = ask("Name")
        step[PasswordCallback.self]?.password = ask("Password", hidden: true)
        if step[TextInputCallback.self] != nil { step[TextInputCallback.self]?.text = ask("Code") }
        return .next
    }
    let read = try await assent.send(.get("\(bank)/accounts"))
    say("The balance is \(try await read.json(Account.self).balance).")

    var told = ""
    let transfer = Transfer(to: "Bob", amount: "200.00", currency: "EUR")
    let reply = try await assent.send(.post("\(bank)/transfers", json: transfer)) { approval in
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

do {
    let assent = try connect()
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
