import NIOCore
import NIOPosix
import NIOHTTP1
import NIOSSL
import X509
import SwiftASN1
