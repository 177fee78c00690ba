#if PKCS11 && os(Linux)
import AssentCore
import CP11Kit
import Foundation

/// The tokens in the PKCS#11 modules that this machine's administrator has registered with p11-kit (pkcs11.conf(5)).
package struct RegisteredTokens: Sendable, Hashable {
    private static let moduleLimit = 64

    /// A module's absolute path.
    package let module: String

    /// The labels of its tokens.
    package let labels: [String]

    /// Why the module could not be asked, and what to do.
    package let problem: String?

    /// Asks every registered module, which runs its code in this process.
    package static func all() -> [RegisteredTokens] { paths().map { tokens(of: $0) } }

    private static func paths() -> [String] {
        guard let modules = p11_kit_modules_load(nil, 0) else { return [] }
        defer { p11_kit_modules_release(modules) }
        var paths: [String] = []
        var next = modules
        while let module = next.pointee, paths.count < moduleLimit {
            if let path = p11_kit_module_get_filename(module) {
                paths.append(String(cString: path))
                free(path)
            }
            next += 1
        }
        return paths
    }

    private static func tokens(of path: String) -> RegisteredTokens {
        do {
            return RegisteredTokens(module: path, labels: try PKCS11Module(path: path).labels(), problem: nil)
        } catch let error as KeyProviderError {
            return RegisteredTokens(module: path, labels: [], problem: error.detail)
        } catch let failure as PKCS11Failure {
            return RegisteredTokens(module: path, labels: [], problem: failure.error.detail)
        } catch {
            return RegisteredTokens(module: path, labels: [], problem: "The module cannot be asked.")
        }
    }
}
#endif
