import AssentAuthorization
import AssentCore
import AssentTransportNIO
import AssentURLSession
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An app that calls its bank by a `URLSession` of its own. Its calls know nothing of approvals: the class that its
/// session's configuration names asks the user, and sends the approved call.
@main
struct App {
    struct Account: Decodable {
        let balance: String
    }

    struct Transfer: Encodable {
        let to: String
        let amount: String
        let currency: String
    }

    static func main() async {
        do {
            let wiring = try BankProtocol.wiring.get()
            var isPaid = false
            do {
                try await wiring.signIn()
                isPaid = try await pay(at: wiring.bank)
            } catch {
                await wiring.transport.shutdown()
                throw error
            }
            await wiring.transport.shutdown()
            exit(isPaid ? 0 : 1)
        } catch let error as any AssentError {
            say(words(of: error))
        } catch {
            say(AssentURLProtocol.underlyingError(of: error).map { words(of: $0) } ?? error.localizedDescription)
        }
        exit(1)
    }

    /// What happened, what to do, and the code.
    private static func words(of error: any AssentError) -> String {
        "\(error.detail)\(error.suggestion.map { " \($0)" } ?? "") [\(error.code)]"
    }

    /// What the app did before there were approvals, and does now.
    private static func pay(at bank: String) async throws -> Bool {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [BankProtocol.self]
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }

        guard let accounts = URL(string: bank + "/accounts"), let transfers = URL(string: bank + "/transfers") else {
            throw URLError(.badURL)
        }
        let (content, _) = try await session.data(for: URLRequest(url: accounts))
        say("The balance is \(try JSONDecoder().decode(Account.self, from: content).balance).")

        var request = URLRequest(url: transfers)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONEncoder().encode(Transfer(to: "Bob", amount: "200.00", currency: "EUR"))
        let (_, response) = try await session.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode
        say(status == 201 ? "Paid." : "Not paid: \(status ?? 0).")
        return status == 201
    }
}

/// The class that the app's session asks. It carries the client, so it must know it before the first call.
final class BankProtocol: AssentURLProtocol {
    static let wiring = Result { try Wiring(CommandLine.arguments) }

    override class var client: AuthorizedClient? { try? wiring.get().client }
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
