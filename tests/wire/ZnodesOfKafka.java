// Prints what Kafka's own encoders (kafka.zk.ZkData) make of the inputs that tests/wire/test_znodes.py encodes with ours:
//   java -cp "$KPYBROKER_KAFKA_LIBS/*" tests/wire/ZnodesOfKafka.java > tests/wire/znodes_of_kafka.tsv
import java.util.*;
import java.nio.charset.StandardCharsets;
import scala.jdk.javaapi.CollectionConverters;
import kafka.zk.*;
import kafka.controller.*;
import org.apache.kafka.common.*;
import org.apache.kafka.metadata.*;
public class ZnodesOfKafka {
  static void out(String k, byte[] b){ System.out.println(k+"\t"+new String(b,StandardCharsets.UTF_8)); }
  static <T> scala.collection.immutable.Seq<T> seq(List<T> l){ return CollectionConverters.asScala(l).toSeq(); }
  static scala.collection.immutable.Seq<Object> iseq(int... v){ List<Object> l=new ArrayList<>(); for(int x:v) l.add(x); return seq(l); }
  static scala.collection.immutable.List bs(Object l){ List<Object> o=new ArrayList<>(); for(Object x: CollectionConverters.asJava((scala.collection.Seq)l)) o.add(new org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState().setBrokerId((Integer)x)); return seq(o).toList(); }
  public static void main(String[] a) throws Exception {
    out("controller", ControllerZNode$.MODULE$.encode(3, 1700000000000L, -1));
    out("cluster", ClusterIdZNode$.MODULE$.toJson("abc_DEF-1234567890xyzQ"));
    Uuid id = Uuid.fromString("ZCw0FbB4RmuDPnTtGxkSYQ");
    for (int n : new int[]{0,1,3,10,11,12,13,24,50,100,1000}) {
      Map<TopicPartition, ReplicaAssignment> m = new HashMap<>();
      for (int p=0;p<n;p++) m.put(new TopicPartition("t",p), new ReplicaAssignment(iseq(p%3,(p+1)%3), p%2==0?iseq(1):iseq(), p%3==0?iseq(2,3):iseq()));
      out("topic"+n, TopicZNode$.MODULE$.encode(scala.Option.apply(id), CollectionConverters.asScala(m)));
    }
    Map<TopicPartition, ReplicaAssignment> m1 = new HashMap<>();
    m1.put(new TopicPartition("t",0), new ReplicaAssignment(iseq(1), iseq(), iseq()));
    out("topicNoId", TopicZNode$.MODULE$.encode(scala.Option.empty(), CollectionConverters.asScala(m1)));
    out("state", TopicPartitionStateZNode$.MODULE$.encode(new LeaderIsrAndControllerEpoch(new kafka.api.LeaderAndIsr(1, 2, LeaderRecoveryState.RECOVERED, bs((scala.collection.immutable.List)seq((List)List.of(1,2)).toList()), 0), 5)));
    out("stateRecovering", TopicPartitionStateZNode$.MODULE$.encode(new LeaderIsrAndControllerEpoch(new kafka.api.LeaderAndIsr(-1, 2, LeaderRecoveryState.RECOVERING, bs((scala.collection.immutable.List)seq((List)List.of()).toList()), 0), 5)));
    String[] names = {"cleanup.policy","retention.ms","segment.bytes","min.insync.replicas","compression.type","max.message.bytes","retention.bytes","unclean.leader.election.enable","preallocate","flush.ms","flush.messages","segment.ms","segment.jitter.ms","index.interval.bytes","delete.retention.ms","min.cleanable.dirty.ratio","file.delete.delay.ms","message.timestamp.type","leader.replication.throttled.replicas","follower.replication.throttled.replicas","max.compaction.lag.ms","min.compaction.lag.ms","segment.index.bytes","message.downconversion.enable","local.retention.ms","remote.storage.enable"};
    for (int n : new int[]{0,1,2,3,6,11,12,13,23,24,26}) { Properties p=new Properties(); for(int i=0;i<n;i++) p.setProperty(names[i], "v"+i); out("config"+n, ConfigEntityZNode$.MODULE$.encode(p)); }
    Properties p=new Properties(); p.setProperty("a", "q\"\\\u001f\u0001\n\u00e9\\u001f\u007f/"); out("configEscapes", ConfigEntityZNode$.MODULE$.encode(p));
    out("change", ConfigEntityChangeNotificationSequenceZNode$.MODULE$.encode("topics/t"));
    out("isr", IsrChangeNotificationSequenceZNode$.MODULE$.encode(CollectionConverters.asScala(new LinkedHashSet<>(List.of(new TopicPartition("t",3))))));
    out("logdir", LogDirEventNotificationSequenceZNode$.MODULE$.encode(2));
    Map<TopicPartition, scala.collection.Seq<Object>> re = new HashMap<>(); re.put(new TopicPartition("t",1), iseq(1,2));
    out("reassign", ReassignPartitionsZNode$.MODULE$.encode((scala.collection.Map)CollectionConverters.asScala(re)));
    out("pid", ProducerIdBlockZNode$.MODULE$.generateProducerIdBlockJson(new org.apache.kafka.server.common.ProducerIdsBlock(1, 1000, 1000)));
    scala.collection.immutable.Set one = (scala.collection.immutable.Set)((scala.collection.IterableOnceOps)CollectionConverters.asScala(new LinkedHashSet<>(List.of(new TopicPartition("t",3))))).toSet();
    out("preferred", PreferredReplicaElectionZNode$.MODULE$.encode(one));
    out("consumerOffset", ConsumerOffset$.MODULE$.encode(42));
    for (int n : new int[]{1,4,5,6,9,40}) {
      List<kafka.cluster.EndPoint> eps=new ArrayList<>();
      for(int i=0;i<n;i++) eps.add(new kafka.cluster.EndPoint(i==1?"::1":"host"+i, 9092+i, org.apache.kafka.common.network.ListenerName.normalised("L"+i), org.apache.kafka.common.security.auth.SecurityProtocol.values()[i%4]));
      out("broker"+n, BrokerIdZNode$.MODULE$.encode(5,"host0",9092,seq(eps),9999,n%2==0?scala.Option.apply("r1"):scala.Option.empty(),org.apache.kafka.common.feature.Features.emptySupportedFeatures()));
    }
    out("broker_v2", BrokerIdZNode$.MODULE$.encode(2,"h",1,seq(List.of(new kafka.cluster.EndPoint("h",1,org.apache.kafka.common.network.ListenerName.normalised("PLAINTEXT"),org.apache.kafka.common.security.auth.SecurityProtocol.PLAINTEXT))),-1,scala.Option.apply("r"),org.apache.kafka.common.feature.Features.emptySupportedFeatures()));
    out("broker_null", BrokerIdZNode$.MODULE$.encode(5,null,-1,seq(List.of(new kafka.cluster.EndPoint("h",1,org.apache.kafka.common.network.ListenerName.normalised("SSL"),org.apache.kafka.common.security.auth.SecurityProtocol.SSL))),-1,scala.Option.empty(),org.apache.kafka.common.feature.Features.supportedFeatures(Map.of("f1",new org.apache.kafka.common.feature.SupportedVersionRange((short)1,(short)3),"metadata.version",new org.apache.kafka.common.feature.SupportedVersionRange((short)1,(short)3)))));
    for (int v=1; v<=2; v++) for (int n : new int[]{0,2,5}) {
      scala.collection.immutable.Map<String,Object> f = scala.collection.immutable.Map$.MODULE$.empty();
      for(int i=0;i<n;i++) f=(scala.collection.immutable.Map<String,Object>)f.updated("feature"+i,(Object)(short)(i+1));
      out("feature"+v+"_"+n, FeatureZNode$.MODULE$.encode(new FeatureZNode(v, v==1?(FeatureZNodeStatus)FeatureZNodeStatus.Disabled$.MODULE$:(FeatureZNodeStatus)FeatureZNodeStatus.Enabled$.MODULE$, f)));
    }
    Set<org.apache.kafka.security.authorizer.AclEntry> acls=new LinkedHashSet<>();
    acls.add(new org.apache.kafka.security.authorizer.AclEntry(new org.apache.kafka.common.acl.AccessControlEntry("User:alice","*",org.apache.kafka.common.acl.AclOperation.IDEMPOTENT_WRITE,org.apache.kafka.common.acl.AclPermissionType.ALLOW)));
    out("acl", ResourceZNode$.MODULE$.encode((scala.collection.immutable.Set)CollectionConverters.asScala(acls).toSet()));
    out("aclChange", LiteralAclChangeStore.createChangeNode(new org.apache.kafka.common.resource.ResourcePattern(org.apache.kafka.common.resource.ResourceType.TRANSACTIONAL_ID,"foo",org.apache.kafka.common.resource.PatternType.LITERAL)).bytes());
    out("aclChangePath", LiteralAclChangeStore.createPath().getBytes());
    out("aclExtChange", ExtendedAclChangeStore.createChangeNode(new org.apache.kafka.common.resource.ResourcePattern(org.apache.kafka.common.resource.ResourceType.TOPIC,"foo",org.apache.kafka.common.resource.PatternType.PREFIXED)).bytes());
    out("aclPath", ResourceZNode.path(new org.apache.kafka.common.resource.ResourcePattern(org.apache.kafka.common.resource.ResourceType.TRANSACTIONAL_ID,"foo",org.apache.kafka.common.resource.PatternType.PREFIXED)).getBytes());
    out("secure", CollectionConverters.asJava(ZkData$.MODULE$.SecureRootPaths()).toString().getBytes());
    out("persistent", CollectionConverters.asJava(ZkData$.MODULE$.PersistentZkPaths()).toString().getBytes());
    var owner=new org.apache.kafka.common.security.auth.KafkaPrincipal("User","al ice*~");
    var req=new org.apache.kafka.common.security.auth.KafkaPrincipal("User","bob");
    out("token", DelegationTokenInfoZNode.encode(new org.apache.kafka.common.security.token.delegation.TokenInformation("tok1",owner,req,List.of(req,owner),1L,2L,3L)));
    out("sanitize", org.apache.kafka.common.utils.Sanitizer.sanitize("a b*c~d+e/é%.-_:'()!").getBytes());
  }
}
